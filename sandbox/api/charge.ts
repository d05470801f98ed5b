import { primaryOperation } from "../ledger/ledger.ts";
import {
  newOperation,
  newPayment,
  type OperationInput,
  type PaymentInput,
} from "../ledger/new-records.ts";
import type { FlowParts, PaymentFlow } from "../ledger/payment-flow.ts";
import type { PaymentOperationRecord, PaymentRecord } from "../ledger/records.ts";
import type { Scenario } from "../ledger/scenarios.ts";
import { ApiError, isApiErrorCode } from "./api-error.ts";
import { faultAfterCharge, faultBeforeCharge } from "./faults.ts";
import { errorResponse, type HttpResponse, json } from "./http.ts";
import { paymentBody } from "./payment-view.ts";

export interface ChargeParts extends FlowParts {
  readonly flow: PaymentFlow;
  /** Requests a second. */
  readonly rateLimit: number;
}

export type Charge = ReturnType<typeof createCharge>;

/**
 * Does operations on payments, and returns the response: Payment transaction data, or for a
 * decline, by scenario, the Error object or payment data. That Error object has the payment's id,
 * since the attempt is in the ledger. A scenario that fails before the charge records nothing.
 */
export function createCharge(parts: ChargeParts) {
  const { ledger, flow, clock, delays, rateLimit, baseUrl } = parts;

  function begin(payment: PaymentRecord, operation: PaymentOperationRecord): HttpResponse {
    flow.begin(payment, operation);
    const answer = answerOf(payment, operation);
    return faultAfterCharge(answer, operation.scenario, delays.slowAnswerMs);
  }

  function answerOf(payment: PaymentRecord, operation: PaymentOperationRecord): HttpResponse {
    const { status, statusCode, scenario } = operation;
    if (status === "failure" && scenario.declines === "error" && isApiErrorCode(statusCode)) {
      return errorResponse(new ApiError(statusCode, { paymentId: payment.paymentId }));
    }
    return json(paymentBody(payment, operation, baseUrl));
  }

  return {
    /** Makes a new attempt to pay. */
    pay(input: PaymentInput, kind: "payment" | "recurrent", scenario: Scenario): HttpResponse {
      const fault = faultBeforeCharge(scenario, rateLimit);
      if (fault) return fault;
      const payment = newPayment(input, kind, scenario, new Date(clock.now()));
      ledger.addPayment(payment);
      return begin(payment, primaryOperation(payment));
    },
    /** Adds an operation to a payment. Its callbacks go where the payment's go by default. */
    operate(payment: PaymentRecord, input: Omit<OperationInput, "createdAt">): HttpResponse {
      const fault = faultBeforeCharge(input.scenario, rateLimit);
      if (fault) return fault;
      const { callbackUrl = payment.callbackUrl } = input;
      const operation = newOperation({ ...input, callbackUrl, createdAt: new Date(clock.now()) });
      payment.operations.push(operation);
      return begin(payment, operation);
    },
  };
}

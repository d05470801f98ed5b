import type { SandboxClock } from "../clock.ts";
import type { PaymentFlow } from "../ledger/payment-flow.ts";
import type { PaymentOperationRecord, PaymentRecord } from "../ledger/records.ts";
import type { Scenario } from "../ledger/scenarios.ts";
import { ApiError, isApiErrorCode } from "./api-error.ts";
import { faultAfterCharge, faultBeforeCharge } from "./faults.ts";
import { errorResponse, type HttpResponse, json } from "./http.ts";
import { paymentBody } from "./payment-view.ts";

/** A recorded operation and its payment. */
export interface Recorded {
  readonly payment: PaymentRecord;
  readonly operation: PaymentOperationRecord;
}

/**
 * Does an operation on a payment and returns the response: Payment transaction data, or for a
 * decline, by scenario, the Error object or payment data. That Error object has the payment's id,
 * since the attempt is in the ledger. A scenario that fails before the charge records nothing.
 */
export type Charge = (scenario: Scenario, record: (createdAt: Date) => Recorded) => HttpResponse;

export interface ChargeOptions {
  readonly flow: PaymentFlow;
  readonly clock: SandboxClock;
  readonly rateLimit: number;
  readonly slowAnswerMs: number;
  readonly baseUrl: string;
}

export function createCharge(options: ChargeOptions): Charge {
  return (scenario, record) => {
    const fault = faultBeforeCharge(scenario, options.rateLimit);
    if (fault) return fault;
    const { payment, operation } = record(new Date(options.clock.now()));
    options.flow.begin(payment, operation);
    return faultAfterCharge(answerOf(payment, operation), scenario, options.slowAnswerMs);
  };

  function answerOf(payment: PaymentRecord, operation: PaymentOperationRecord): HttpResponse {
    const { status, statusCode, scenario } = operation;
    if (status === "failure" && scenario.declines === "error" && isApiErrorCode(statusCode)) {
      return errorResponse(new ApiError(statusCode, { paymentId: payment.paymentId }));
    }
    return json(paymentBody(payment, operation, options.baseUrl));
  }
}

import * as z from "zod";
import { hasLive, isOpen, succeeded } from "../ledger/ledger.ts";
import { ledgerView } from "../ledger/ledger-view.ts";
import { add, compare, subtract } from "../ledger/money.ts";
import type { PaymentRecord } from "../ledger/records.ts";
import { scenarioFor, success } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { amountOrText, readBody } from "./fields.ts";
import { json, type Route, type SandboxRequest } from "./http.ts";
import type { Parts } from "./parts.ts";
import { paymentBody } from "./payment-view.ts";

/**
 * The sandbox's own endpoints, for actions that the spec has callbacks but no endpoints for: a
 * merchant does them by hand on the service's site.
 */
export function createControlRoutes({ ledger, flow, charge, baseUrl }: Parts): Route[] {
  function paymentOf({ params }: SandboxRequest): PaymentRecord {
    const payment = ledger.payment(params.payment_id ?? "");
    if (!payment) throw new ApiError("transaction_not_found", { param: "payment_id" });
    return payment;
  }

  return [
    {
      method: "POST",
      path: "/sandbox/payments/{payment_id}/refund",
      handle(request) {
        const payment = paymentOf(request);
        const { amount: given } = request.body ? readBody(refundBody, request.body) : {};
        const amount = refundable(payment, given);
        const scenario = given === undefined ? success : scenarioFor(amount);
        return charge.operate(payment, { kind: "refund", amount, scenario });
      },
    },
    {
      method: "POST",
      path: "/sandbox/payments/{payment_id}/cancel",
      handle(request) {
        const payment = paymentOf(request);
        const { paymentId, amount } = payment;
        if (hasLive(payment, "cancel")) throw new ApiError("action_already_done", { paymentId });
        if (!succeeded(payment) || payment.confirm || hasLive(payment, "confirm")) {
          throw new ApiError("action_not_allowed", { paymentId });
        }
        return charge.operate(payment, { kind: "cancel", amount, scenario: success });
      },
    },
    {
      method: "POST",
      path: "/sandbox/payments/{payment_id}/settle",
      handle(request) {
        const { status } = readBody(settleBody, request.body);
        const payment = paymentOf(request);
        const pending = payment.operations.find(isOpen);
        if (!pending) {
          throw new ApiError("action_already_done", { paymentId: payment.paymentId });
        }
        flow.settle(payment, pending, status === "success" ? status : "transaction_declined");
        return json(paymentBody(payment, pending, baseUrl));
      },
    },
    {
      method: "GET",
      path: "/sandbox/ledger",
      handle: () => json(JSON.stringify(ledgerView(ledger))),
    },
  ];
}

const refundBody = z.object({ amount: amountOrText.optional() });
const settleBody = z.object({ status: z.enum(["success", "failure"]) });

/** The amount to refund: the given one, or all that is not refunded yet. @throws ApiError */
function refundable(payment: PaymentRecord, given: string | undefined): string {
  const { paymentId } = payment;
  const captured = capturedAmount(payment);
  if (captured === undefined) throw new ApiError("action_not_allowed", { paymentId });
  const refunded = payment.operations
    .filter(({ kind, status }) => kind === "refund" && status !== "failure")
    .reduce((sum, { amount }) => add(sum, amount), "0");
  const amount = given ?? subtract(captured, refunded);
  if (!/[1-9]/.test(amount) || compare(add(refunded, amount), captured) > 0) {
    throw new ApiError("incorrect_refund_sum_or_currency", { param: "amount", paymentId });
  }
  return amount;
}

/** The amount that was transferred: the payment's, or what was confirmed; undefined if none. */
function capturedAmount(payment: PaymentRecord): string | undefined {
  if (!succeeded(payment)) return undefined;
  if (payment.confirm) return payment.amount;
  return payment.operations.find(({ kind, status }) => kind === "confirm" && status === "success")
    ?.amount;
}

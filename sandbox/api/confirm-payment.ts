import * as z from "zod";
import { attemptsOf, hasLive, succeeded } from "../ledger/ledger.ts";
import { compare } from "../ledger/money.ts";
import type { PaymentRecord } from "../ledger/records.ts";
import { scenarioFor, success } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { amount, currency, filled, httpUrl, readBody, texts } from "./fields.ts";
import type { Route } from "./http.ts";
import type { Parts } from "./parts.ts";

/**
 * POST payments/v1/confirm: transfers held funds, once. The spec does not show request and
 * response: the request has the fields that other calls share, the response is Payment transaction
 * data.
 */
export function createConfirmPaymentRoute({ ledger, charge }: Parts): Route {
  return {
    method: "POST",
    path: "/api/payments/v1/confirm",
    handle(request) {
      const { external_id, amount, currency, ...given } = readBody(confirmBody, request.body);
      const payment = heldPayment(attemptsOf(ledger, external_id));
      checkAgainst(payment, amount, currency);
      const scenario = amount === undefined ? success : scenarioFor(amount);
      return charge.operate(payment, {
        ...{ payload: given.payload, callbackUrl: given.callback_url },
        kind: "confirm",
        amount: amount ?? payment.amount,
        scenario,
      });
    },
  };
}

const confirmBody = z.object({
  external_id: filled,
  amount: amount.optional(),
  currency: currency.optional(),
  callback_url: httpUrl.optional(),
  ...texts("payload"),
});

function heldPayment(attempts: readonly PaymentRecord[]): PaymentRecord {
  const payment = attempts.find(succeeded);
  if (!payment) throw new ApiError("action_not_allowed", { message: "No attempt succeeded" });
  const { paymentId } = payment;
  if (payment.confirm || hasLive(payment, "confirm")) {
    throw new ApiError("action_already_done", { paymentId });
  }
  if (hasLive(payment, "cancel")) throw new ApiError("action_not_allowed", { paymentId });
  return payment;
}

function checkAgainst(
  { amount: held, currency: heldCurrency, paymentId }: PaymentRecord,
  amount: string | undefined,
  currency: string | undefined,
): void {
  if (currency !== undefined && currency !== heldCurrency) {
    throw new ApiError("invalid_currency", { param: "currency", paymentId });
  }
  if (amount !== undefined && compare(amount, held) > 0) {
    const code = "confirm_amount_cannot_be_more_than_the_transaction_amount";
    throw new ApiError(code, { param: "amount", paymentId });
  }
}

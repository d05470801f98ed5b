import * as z from "zod";
import { attemptsOf } from "../ledger/ledger.ts";
import type { PayoutRecord } from "../ledger/records.ts";
import { ApiError } from "./api-error.ts";
import { filled, readBody, text } from "./fields.ts";
import { type HttpResponse, json, type Route } from "./http.ts";
import type { Parts } from "./parts.ts";
import { payoutCallbackBody } from "./payout-view.ts";

/**
 * POST payments/v1/callback/resend: resends the callback of the latest operation, of the given kind
 * if there is one. For an external id that only a payout has, resends the payout's callback.
 */
export function createResendCallbackRoute({ ledger, flow, callbacks }: Parts): Route {
  function resendPayout(payout: PayoutRecord): HttpResponse {
    const { transactionId: subject, externalId, callbackUrl: url } = payout;
    if (url === undefined) throw withoutCallbackUrl();
    callbacks.resend({ subject, externalId, url }, payoutCallbackBody(payout));
    return onItsWay;
  }

  return {
    method: "POST",
    path: "/api/payments/v1/callback/resend",
    handle(request) {
      const asked = readBody(resendBody, request.body);
      const { external_id: externalId, operation: kind } = asked;
      const payout = ledger.payout(externalId);
      if (payout && kind === undefined && ledger.attempts(externalId).length === 0) {
        return resendPayout(payout);
      }
      const latest = attemptsOf(ledger, externalId)
        .flatMap((payment) => payment.operations.map((operation) => ({ payment, operation })))
        .filter(({ operation }) => kind === undefined || operation.kind === kind)
        .toSorted((a, b) => a.operation.createdAt.getTime() - b.operation.createdAt.getTime())
        .at(-1);
      if (!latest) throw new ApiError("transaction_not_found", { param: "operation" });
      const { payment, operation } = latest;
      if (operation.callbackUrl === undefined) throw withoutCallbackUrl(payment.paymentId);
      flow.resend(payment, operation);
      return onItsWay;
    },
  };
}

const resendBody = z.object({ external_id: filled, operation: text.optional() });

const onItsWay = json('{"message":"The callback is on its way"}');

function withoutCallbackUrl(paymentId?: string): ApiError {
  const message = "It has no callback_url";
  return new ApiError("action_not_allowed", { message, ...(paymentId && { paymentId }) });
}

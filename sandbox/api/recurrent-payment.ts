import { createHash } from "node:crypto";
import * as z from "zod";
import { type Ledger, refuseIfPaid, succeeded } from "../ledger/ledger.ts";
import type { PaymentRecord } from "../ledger/records.ts";
import { scenarioFor } from "../ledger/scenarios.ts";
import { ApiError } from "./api-error.ts";
import { amount, filled, flag, httpUrl, readBody, texts, uuid } from "./fields.ts";
import type { Route } from "./http.ts";
import type { Parts } from "./parts.ts";

/** POST payments/v1/recurrent: charges the card of an earlier payment. Only the amount is magic. */
export function createRecurrentPaymentRoute({ ledger, charge }: Parts): Route {
  return {
    method: "POST",
    path: "/api/payments/v1/recurrent",
    handle(request) {
      const body = readBody(recurrentBody, request.body);
      const { recurrent_id: recurrentId, delegate_api_key: delegateKey } = body;
      const given = {
        externalId: body.external_id,
        unifiedExternalId: body.unified_external_id,
        callbackUrl: body.callback_url,
        subscriptionId: body.subscription_id,
        ...{ amount: body.amount, payload: body.payload, confirm: body.confirm },
        projectId: delegateKey && projectOf(delegateKey),
        ...{ saveToWallet: false, products: [] },
      };
      const { currency, customer, methodType, card } = primaryOf(ledger, recurrentId);
      refuseIfPaid(ledger, given.externalId);
      const input = { ...given, currency, customer, methodType, card };
      return charge.pay(input, "recurrent", scenarioFor(given.amount));
    },
  };
}

const recurrentBody = z.object({
  recurrent_id: filled,
  delegate_api_key: uuid.optional(),
  external_id: filled,
  amount,
  callback_url: httpUrl.optional(),
  confirm: flag.default(true),
  ...texts("unified_external_id", "payload", "subscription_id"),
});

/** The project of a key's owner: a digest, from which the key cannot be recovered. */
function projectOf(apiKey: string): string {
  const digest = createHash("sha256").update(apiKey.toLowerCase()).digest("hex");
  return `delegate-${digest.slice(0, 8)}`;
}

function primaryOf(ledger: Ledger, recurrentId: string): PaymentRecord {
  const primary = ledger.paymentByRecurrent(recurrentId);
  if (primary && succeeded(primary)) return primary;
  const code = ledger.payment(recurrentId)
    ? "transaction_is_not_recurring"
    : "transaction_success_primary_not_found";
  throw new ApiError(code, { param: "recurrent_id" });
}

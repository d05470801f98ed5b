/**
 * A payments service that only answers: each response is a payment or an operation with the ids of
 * the request. It takes traces, too, and drops them. Prints its URL.
 */

import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const action = { type: "redirect", value: "https://checkout.example.test/3ds/abcdef0123456789" };
const details = {
  ...{ amount: 150.75, currency: "UAH", rrn: "412300998877", method: "purchase" },
  ...{ billing_order_id: "b-774411", gateway_order_id: "g-88112233", bank_name: "Example Bank" },
  ...{ transaction_id: "9b1de2a0-58f4-4f0d-8a5b-3c1a4d1f7e11", auth_code: "778899" },
};
const times = {
  created_at: "2026-11-20T10:15:30.000Z",
  processed_at: "2026-11-20T10:15:31.250Z",
};

/** The bare proxy calls this endpoint, too. */
function operationOf(query: URLSearchParams): object {
  return {
    ...{ external_id: query.get("external_id"), status: "pending", ...times },
    ...{ details: { ...details, operation_id: query.get("operation_id") }, action },
    ...{ status_code: "waiting_for_redirect", status_description: "Waiting for the payer" },
    ...{ payment_method_type: "card", action_required: true, one_stage: true },
  };
}

function paymentOf(externalId: string): object {
  const id = randomUUID();
  return {
    ...{ id, external_id: externalId, is_success: true, operation: "payment", action },
    details: {
      ...{ ...details, ...times, payment_id: id, status: "success" },
      ...{ status_code: "transaction_successful", fee: { amount: "1.50", currency: "UAH" } },
    },
    customer: { email: "jo@example.com", external_id: "c-9", first_name: "Jo", last_name: "Lee" },
    payment_method: { type: "card", cc_token: { mask: "411111******1111", token: "t" } },
  };
}

function payoutOf(externalId: string): object {
  return {
    ...{ transaction_id: randomUUID(), external_id: externalId, status: "success" },
    ...{ currency: "UAH", original_amount: "10.10", payer_amount: "10.30", payout_type: "card" },
    ...{ payer_account: { entity_id: "p-1" }, status_code: "paid", description: "a prize" },
    recipient_user: { first_name: "Jo", last_name: "Lee" },
  };
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "", "http://upstream");
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk) => {
    body += chunk;
  });
  request.on("end", () => {
    if (pathname === "/v1/traces") return response.end();
    const answer = pathname.endsWith("/operation")
      ? operationOf(searchParams)
      : pathname.endsWith("/request-payout")
        ? payoutOf(JSON.parse(body).order.external_id)
        : paymentOf(JSON.parse(body).external_id);
    const text = JSON.stringify(answer);
    response.writeHead(200, {
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
      ...{ "x-ratelimit-limit": "100000", "x-ratelimit-remaining": "99999" },
      "x-ratelimit-reset": "1",
    });
    response.end(text);
  });
});
server.listen(0, "127.0.0.1", () => {
  console.log(`ready upstream=http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

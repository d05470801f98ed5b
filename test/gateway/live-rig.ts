import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import type { Gateway } from "../../src/app/gateway.ts";
import { sign } from "../../src/wire/signature.ts";

/**
 * Sends a signed callback, which becomes an event: the `n`th refund of a payment, or with the
 * operation `payment` its success.
 */
export async function sendEvent(
  gateway: Pick<Gateway, "publicUrl">,
  externalId: string,
  n: number,
  operation = "refund",
): Promise<void> {
  const text = JSON.stringify({
    external_id: externalId,
    operation,
    is_success: true,
    details: {
      payment_id: `pay-${externalId}`,
      operation_id: `op-${n}`,
      amount: "1.00",
      status: operation === "payment" ? "success" : "pending",
      status_code: "code",
    },
  });
  const body = new TextEncoder().encode(text);
  const request = http.request(`${gateway.publicUrl}/callbacks/default/payments`, {
    method: "POST",
    agent,
    headers: { "x-service-signature": sign(body, "sandbox-password") },
  });
  request.end(body);
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  response.resume();
  await once(response, "end");
  assert.equal(response.statusCode, 200);
}

/** `fetch` would need more processor time for thousands of callbacks than the gateway does. */
const agent = new http.Agent({ keepAlive: true });

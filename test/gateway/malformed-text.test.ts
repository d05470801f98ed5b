import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { sign } from "../../src/wire/signature.ts";
import { startBefore } from "../start.ts";

/** Half of a surrogate pair, which JSON can express and UTF-8 cannot. */
const half = "\\ud800";

const upstream = createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) body += chunk;
  const { external_id: id } = JSON.parse(body) as { external_id: string };
  response.setHeader("content-type", "application/json");
  response.end(paymentBody(id));
});

function paymentBody(id: string): string {
  return (
    `{"external_id":"${id}","operation":"payment","details":{"payment_id":"pay-${id}",` +
    `"status":"success","payload":"a${half}b","description":"${half}","amount":"1.00"}}`
  );
}

let gateway: Gateway;
before(async () => {
  gateway = await startBefore(upstream, {
    AUTH_MODE: "none",
    RATE_LIMIT_INITIAL: "1000",
  });
});
after(async () => {
  await gateway.stop();
});

const payments = () =>
  createClient(PaymentService, createGrpcTransport({ baseUrl: gateway.rpcUrl }));

async function counted(): Promise<string[]> {
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  return text.split("\n").filter((line) => /^payments_gateway_upstream_malformed_texts/.test(line));
}

test("a signed callback with half of a surrogate pair is stored and becomes an event", async () => {
  const body = paymentBody("by-callback");
  const send = () =>
    fetch(`${gateway.publicUrl}/callbacks/default/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(Buffer.from(body), new Secret("password")) },
      body,
    });
  assert.equal((await send()).status, 200);
  assert.equal((await send()).status, 200, "the same again");
  const { payment } = await payments().getPayment({ externalId: "by-callback" });
  assert.equal(payment?.details?.payload, "a\ufffdb");
  const field = 'endpoint="callback payments",field="details.payload"';
  assert.ok((await counted()).some((line) => line.includes(field)));
});

test("an answer with half of a surrogate pair is returned and becomes an event", async () => {
  const { payment } = await payments().createPayment({
    externalId: "by-answer",
    amount: "1.00",
    currency: "UAH",
    mode: PaymentMode.HOSTED,
    paymentMethod: { type: 6 },
  });
  assert.equal(payment?.details?.payload, "a\ufffdb");
  const known = await payments().getPayment({ externalId: "by-answer" });
  assert.equal(known.payment?.details?.description, "\ufffd");
  assert.notEqual(known.cursor, "");
  const field = 'endpoint="POST /api/payments/v1/new",field="details.payload"';
  assert.ok((await counted()).some((line) => line.includes(field)));
});

test("a dead letter with half of a surrogate pair is acknowledged, so it is not sent again", async () => {
  const body = `{"nothing":"${half}"}`;
  const response = await fetch(`${gateway.publicUrl}/callbacks/default/payments`, {
    method: "POST",
    headers: { "x-service-signature": sign(Buffer.from(body), new Secret("password")) },
    body,
  });
  assert.equal(response.status, 200);
});

import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { type TestContext, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentMethodType } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { startBefore } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { type Scrape, scrapeOf } from "./scrape.ts";

const account = "default";
const timeout = 2 * timeoutMs;

/** A gateway in front of a payments service that answers with `answer`. */
async function rig(t: TestContext, answer: RequestListener, env: Record<string, string> = {}) {
  const common = { AUTH_MODE: "none", RECONCILE_AFTER: "0" };
  const gateway = await startBefore(createServer(answer), { ...common, ...env });
  t.after(() => gateway.stop());
  const transport = createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" });
  const payments = createClient(PaymentService, transport);
  const payouts = createClient(PayoutService, transport);
  const order = {
    ...{ amount: "10.10", currency: "UAH", mode: PaymentMode.HOSTED },
    paymentMethod: { type: PaymentMethodType.CC_NUMBER },
  };
  return {
    gateway,
    look: (externalId = "none") => payouts.getPayout({ externalId }).catch(() => undefined),
    pay: (externalId: string) =>
      payments.createPayment({ ...order, externalId }).catch(() => undefined),
  };
}

/** Resolves when the metrics fit. If they never do, the test times out. */
async function scrapeUntil(gateway: Gateway, fits: (scrape: Scrape) => boolean): Promise<void> {
  for (;;) if (fits(await scrapeOf(gateway))) return;
}

const status =
  (code: number, body = "{}"): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(code, { "content-type": "application/json" }).end(body);
  };

test("refused credentials show in the metrics and count as an internal error", {
  timeout,
}, async (t) => {
  const { gateway, look } = await rig(t, status(401));
  const before = await scrapeOf(gateway);
  assert.equal(before.value("upstream_credentials_refused", { account }), 0);
  assert.equal(before.value("ready", {}), 1);
  await look();
  const { value } = await scrapeOf(gateway);
  assert.equal(value("upstream_credentials_refused", { account }), 1);
  assert.equal(value("ready", {}), 0);
  assert.equal(value("internal_errors_total", { edge: "rpc" }), 1);
});

test("failed reads are counted by what followed, and the breaker's state is a metric", {
  timeout,
}, async (t) => {
  const { gateway, look } = await rig(t, status(500), { RATE_LIMIT_INITIAL: "1000" });
  await scrapeUntil(gateway, ({ value }) => {
    void look();
    return value("upstream_breaker_state", { account, calls: "other" }) === 2;
  });
  const { sum, value } = await scrapeOf(gateway);
  assert.ok(sum("upstream_read_failures_total", { account, next: "retry" }) > 0);
  assert.ok(sum("upstream_requests_total", { account, outcome: "500" }) > 0);
  assert.equal(value("upstream_breaker_state", { account, calls: "money" }), 0);
});

test("calls that wait for a token, and those that get none, are counted", {
  timeout,
}, async (t) => {
  const answers = status(404, '{"error":{"code":"payout_not_found","type":"api_error"}}');
  const env = { RATE_LIMIT_INITIAL: "2", RATE_LIMIT_RESERVE: "0" };
  const { gateway, look } = await rig(t, answers, { ...env, RATE_LIMIT_MAX_WAIT: "1500ms" });
  const looks = Promise.all(Array.from({ length: 12 }, (_, nth) => look(`none-${nth}`)));
  const labels = { account, priority: "read" };
  await scrapeUntil(gateway, ({ value }) => (value("rate_limit_waiting", labels) ?? 0) > 0);
  await scrapeUntil(gateway, ({ value }) => value("rate_limit_waiting_callers", labels) === 1);
  await looks;
  const { value, sum } = await scrapeOf(gateway);
  assert.equal(value("rate_limit_waiting", labels), 0);
  assert.equal(value("rate_limit_waiting_callers", labels), 0);
  const refused = value("rate_limit_refusals_total", { ...labels, reason: "RESOURCE_EXHAUSTED" });
  const taken = sum("rate_limit_wait_seconds_count", labels);
  assert.ok(refused && refused > 0);
  assert.equal(taken + refused, 12);
  assert.equal(taken, sum("upstream_requests_total", { account }));
});

test("a call whose outcome cannot be looked up is given up and counted", { timeout }, async (t) => {
  const { gateway, pay } = await rig(
    t,
    (request, response) => {
      if (request.url?.endsWith("/new"))
        request.resume().once("end", () => request.socket.destroy());
      else status(500)(request, response);
    },
    { RECONCILE_AFTER: "50ms", RECONCILE_GIVE_UP: "1s", RATE_LIMIT_INITIAL: "100" },
  );
  await pay("lost");
  await scrapeUntil(gateway, ({ value }) => {
    return value("reconciliations_given_up_total", { account }) === 1;
  });
  const { sum } = await scrapeOf(gateway);
  assert.ok(sum("reconciliation_probes_total", { account }) > 0);
});

test("an answer that cannot be recorded is counted", {
  timeout,
  skip: withoutRedis,
}, async (t) => {
  const redis = await startRedis();
  t.after(() => redis.close());
  const paid = JSON.stringify({
    external_id: "order-1",
    operation: "payment",
    details: { payment_id: "p-1", status: "success", amount: 10.1, currency: "UAH" },
  });
  const { gateway, pay } = await rig(
    t,
    (request, response) => {
      // Redis is stopped before the answer is sent.
      void redis.stop().then(() => status(200, paid)(request, response));
    },
    { REDIS_URL: redis.url },
  );
  await pay("order-1");
  const { value, sum } = await scrapeOf(gateway);
  assert.equal(value("events_unrecorded_total", { account }), 1);
  assert.equal(sum("events_appended_total", { account, outcome: "failed" }), 1);
});

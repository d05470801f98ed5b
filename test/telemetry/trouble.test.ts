import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import type { Calls } from "../../src/admin/console-api.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import type { LogLevel, Report } from "../../src/report.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";
import { clientOf, hostedPayment } from "../gateway/callers.ts";
import { closing } from "../of-suite.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { startBefore } from "../start.ts";
import { readScrape, scrapeOf, scrapeUntil } from "./scrape.ts";

const account = "default";

const cuts = ["reset_flood", "connections"] as const;
const listeners = ["rpc", "public"] as const;
const failures = ["HTTP 502", "no answer in time"] as const;
const fields = ["details.amount", "is_success"] as const;

const alone = { AUTH_MODE: "none", RECONCILE_AFTER: "0" };

/** Telemetry that logs warnings, or from another level on, into `told`. */
async function telemetryTo(told: object[], level: LogLevel = "warn") {
  const write = (line: string) => {
    const { time: _, ...record } = JSON.parse(line);
    told.push(record);
  };
  return createTelemetry(createLogger(level, { write }), [account]);
}

const status =
  (code: number, body = "{}"): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(code, { "content-type": "application/json" }).end(body);
  };

test("refused credentials show in the metrics and count as an internal error", async (t) => {
  const gateway = closing(t, await startBefore(createServer(status(401)), alone));
  const before = await scrapeOf(gateway);
  assert.equal(before.value("upstream_credentials_refused", { account }), 0);
  assert.equal(before.value("ready", {}), 1);
  await assert.rejects(clientOf(PayoutService, gateway).getPayout({ externalId: "none" }));
  const { value } = await scrapeOf(gateway);
  assert.equal(value("upstream_credentials_refused", { account }), 1);
  assert.equal(value("ready", {}), 0);
  assert.equal(value("internal_errors_total", { edge: "rpc" }), 1);
  const { now } = performance;
  t.mock.method(performance, "now", () => now.call(performance) + 60_000);
  const later = await scrapeOf(gateway);
  assert.equal(later.value("ready", {}), 1, "only further calls can show that they are accepted");
});

test("requests without an answer, and calls that wait for a token, are counted as they are", async (t) => {
  const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
  const service = createServer((...asked) => void held.then(() => status(404)(...asked)));
  const env = { ...alone, RATE_LIMIT_INITIAL: "1", RATE_LIMIT_RESERVE: "0" };
  const gateway = closing(t, await startBefore(service, env));
  const payouts = clientOf(PayoutService, gateway);
  const asked = ["a", "b"].map((externalId) => payouts.getPayout({ externalId }));
  const { value } = await scrapeUntil(
    gateway,
    ({ value }) => value("rate_limit_waiting", { account, priority: "read" }) === 1,
  );
  assert.equal(value("rate_limit_waiting", { account, priority: "money" }), 0);
  assert.equal(value("upstream_requests_in_flight", { account }), 1);
  letGo();
  await Promise.allSettled(asked);
});

test("an unknown outcome that nobody looks up is counted, and no look-up is told", async (t) => {
  const gateway = closing(t, await startBefore(createServer(status(500)), alone));
  const open = { account, state: "unknown" };
  assert.equal((await scrapeOf(gateway)).value("money_calls_open", open), 0);
  const pay = clientOf(PaymentService, gateway).createPayment(hostedPayment("order-1"));
  await assert.rejects(pay, { code: Code.Unknown });
  const { value } = await scrapeOf(gateway);
  assert.equal(value("money_calls_open", open), 1);
  assert.ok((value("money_calls_oldest_unknown_seconds", { account }) ?? 0) > 0);
  const { calls } = (await (await fetch(`${gateway.adminUrl}/api/calls`)).json()) as Calls;
  assert.deepEqual(
    calls.map(({ externalId, nextLookMs }) => [externalId, nextLookMs]),
    [["order-1", undefined]],
  );
});

test("an external_id that may be a card number is masked in every record, and a long one cut", async () => {
  const told: object[] = [];
  const { report } = await telemetryTo(told, "info");
  const about = { account, externalId: "4716 1089 9971 6531" };
  const call = { ...about, method: "CreatePayment", was: "unknown" };
  const received = { durationMs: 1, requestId: "r" };
  const write = { kind: "payment", outcome: "stored", durationMs: 1, conflict: true } as const;
  report("callback", { ...about, ...received, verdict: "stored", resource: "payments" });
  report("unrecorded", { ...about, error: undefined });
  report("appended", { ...about, ...write, source: "reconciliation" });
  report("operatorAsked", { ...about, operator: "o", action: "look up", kind: "payment" });
  report("settled", { ...call, by: "callback" });
  report("givenUp", { ...call, startedAtMs: 0 });
  report("unreadable", { account, record: `payment:${about.externalId}`, error: undefined });
  report("unrecorded", { account, externalId: "x".repeat(1_000), error: undefined });
  const ids = told.map((told) => {
    const { externalId, record } = told as { externalId?: string; record?: string };
    return externalId ?? record?.slice("payment:".length);
  });
  assert.deepEqual(ids, [...Array(7).fill("4716 10** **** 6531"), "x".repeat(128)]);
});

const endpoint = "POST /api/payments/v1/new";
const ended = { account, endpoint, durationMs: 1, traceparent: undefined };

/** What is logged once for each sort, and then once a minute: two sorts of each, as it is reported. */
const repeats: [msg: string, say: (report: Report, sort: 0 | 1) => void, records: object[]][] = [
  [
    "a limit cut a connection",
    (report, sort) => report("cut", { listener: "rpc", limit: cuts[sort] }),
    cuts.map((limit) => ({ listener: "rpc", limit })),
  ],
  [
    "overload: a call was refused",
    (report, sort) => report("refused", { listener: listeners[sort], kind: "other" }),
    listeners.map((listener) => ({ listener, kind: "other" })),
  ],
  [
    "a call to the payments service failed",
    (report, sort) => report("upstreamCall", { ...ended, outcome: "x", fault: failures[sort] }),
    failures.map((fault) => ({ account, endpoint, fault })),
  ],
  [
    "unexpected value from the payments service: field left unset",
    (report, sort) => report("fieldFault", { account, endpoint, path: fields[sort], kind: "type" }),
    fields.map((field) => ({ account, endpoint, field, fault: "type" })),
  ],
];

for (const [msg, say, records] of repeats) {
  test(`"${msg}" is logged once for each sort, and then counted once a minute`, async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const told: object[] = [];
    const { report } = await telemetryTo(told);
    for (const sort of [0, 1, 0, 0] as const) say(report, sort);
    const [first, second] = records.map((record) => ({ level: "warn", ...record, msg }));
    assert.deepEqual(told.splice(0), [first, second]);
    t.mock.timers.tick(60_000);
    const again = { repeated: 2, msg: `${msg} (more like this one in the last minute)` };
    assert.deepEqual(told, [{ ...first, ...again }]);
  });
}

test("a call that the payments service answered is no failure", async () => {
  const told: object[] = [];
  const { report } = await telemetryTo(told);
  report("upstreamCall", { ...ended, outcome: "200", fault: undefined });
  assert.deepEqual(told, []);
});

test("an outage of Redis is logged with the last error of a connection, not with one of before", async (t) => {
  const told: { connectionError?: string }[] = [];
  const { report } = await telemetryTo(told);
  const away = () => report("redisAway", { reason: "", awayMs: 0, accounts: [account] });
  away();
  report("redisError", { reason: "WRONGPASS" });
  away();
  const now = performance.now() + 60_000;
  t.mock.method(performance, "now", () => now);
  away();
  assert.deepEqual(
    told.map(({ connectionError }) => connectionError),
    [undefined, "WRONGPASS", undefined],
  );
});

test("a record that cannot be read is counted each time, and its name is logged once a minute", async () => {
  const told: { record?: string }[] = [];
  const { metrics, report } = await telemetryTo(told);
  for (const record of ["payment:a", "payment:b", "payment:a"]) {
    report("unreadable", { account, record, error: new SyntaxError() });
  }
  assert.deepEqual(
    told.map(({ record }) => record),
    ["payment:a", "payment:b"],
  );
  const { value } = readScrape(await metrics.registry.metrics());
  assert.equal(value("records_unreadable_total", { account }), 3);
});

test("waits for tokens and calls that are given up are counted, as reported", async () => {
  const { metrics, report } = await telemetryTo([]);
  const read = async () => readScrape(await metrics.registry.metrics());
  report("breaker", { account, calls: "other", state: "open" });
  const labels = { account, priority: "read" } as const;
  const ask = { ...labels, caller: { name: "shop" } };
  const { value } = await read();
  assert.equal(value("upstream_breaker_state", { account, calls: "other" }), 2);
  assert.equal(value("upstream_breaker_state", { account, calls: "money" }), 0);

  const reason = "RESOURCE_EXHAUSTED";
  report("tokenGiven", { ...ask, waitedMs: 1 });
  for (let nth = 0; nth < 2; nth++) report("tokenGiven", { ...ask, waitedMs: 1, refused: reason });
  report("probed", { account, lookupMethod: "resend", outcome: "asked" });
  report("givenUp", {
    ...{ account, method: "CreatePayment", externalId: "lost", was: "unknown" },
    startedAtMs: 0,
  });
  const after = await read();
  assert.equal(after.value("rate_limit_refusals_total", { ...labels, reason }), 2);
  assert.equal(after.sum("rate_limit_wait_seconds_count", labels), 1);
  assert.equal(after.sum("reconciliation_probes_total", { account }), 1);
  assert.equal(after.value("reconciliations_given_up_total", { account }), 1);
});

test("an answer that cannot be recorded is counted", {
  skip: withoutRedis,
}, async (t) => {
  const redis = await startRedis();
  t.after(() => redis.close());
  const paid = JSON.stringify({
    external_id: "order-1",
    operation: "payment",
    details: { payment_id: "p-1", status: "success", amount: 10.1, currency: "UAH" },
  });
  const service = createServer((request, response) => {
    // Redis is stopped before the answer is sent.
    void redis.stop().then(() => status(200, paid)(request, response));
  });
  const gateway = closing(t, await startBefore(service, { ...alone, REDIS_URL: redis.url }));
  await clientOf(PaymentService, gateway).createPayment(hostedPayment("order-1"));
  const { value, sum } = await scrapeOf(gateway);
  assert.equal(value("events_unrecorded_total", { account }), 1);
  assert.equal(sum("events_appended_total", { account, outcome: "failed" }), 1);
});

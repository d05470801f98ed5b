import assert from "node:assert/strict";
import { test } from "node:test";
import { Activity } from "../../src/admin/activity.ts";
import type { Observations } from "../../src/report.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createTelemetry } from "../../src/telemetry/telemetry.ts";

const account = "default";

/** The activity of an account, and what is reported to the telemetry that it reads. */
function rig() {
  const { metrics, report } = createTelemetry(createLogger("silent"), [account, "other"]);
  const activity = new Activity(account, metrics);
  return {
    activity,
    report,
    call(outcome: string, endpoint = "POST /new", of = account, durationMs = 40) {
      const ended = { endpoint, outcome, durationMs, http: () => ({}), traceparent: undefined };
      report("upstreamCall", { account: of, ...ended });
    },
    callback: (verdict: string, about: Partial<Observations["callback"]> = { account }) =>
      report("callback", { verdict, requestId: "r", durationMs: 1, ...about }),
    waited(name: string, waitedMs: number, refused?: string) {
      activity.waited({ account, priority: "read", caller: { name }, waitedMs, refused });
    },
    pass(seconds: number) {
      for (let n = 0; n < seconds; n++) activity.tick();
    },
  };
}

test("quantiles are accurate to about a third", () => {
  const { activity, call } = rig();
  assert.equal(activity.upstream.minute.p50Ms, null);
  for (let ms = 1; ms <= 1_000; ms++) call("200", "POST /new", account, ms);
  const { p50Ms, p95Ms } = activity.upstream.minute;
  for (const [share, told] of [
    [0.5, p50Ms],
    [0.95, p95Ms],
  ] as const) {
    assert.ok(Math.abs((told ?? 0) - share * 1_000) <= share * 333, `${share}: ${told}`);
  }
  const slow = rig();
  slow.call("200", "POST /new", account, 1e9);
  assert.equal(slow.activity.upstream.minute.p95Ms, 60_000, "longer than the longest class");
});

test("calls are counted by outcome in the last minute, and by endpoint in five minutes", () => {
  const { activity, call, pass } = rig();
  call("200", "POST /new", "other");
  assert.equal(activity.upstream.health, "idle", "another account's calls are not shown");
  call("200");
  call("404");
  call("CANCELLED");
  assert.equal(activity.upstream.health, "healthy", "a refusal is an answer");
  call("429");
  call("500");
  assert.equal(activity.upstream.health, "degraded");
  for (let n = 0; n < 5; n++) call("UNKNOWN", "GET /info");
  const { minute, health, endpoints, history } = activity.upstream;
  assert.deepEqual([minute.calls, minute.failed, minute.limited], [10, 6, 1]);
  assert.equal(minute.p95Ms, 40);
  assert.equal(health, "failing");
  assert.deepEqual(
    endpoints.map(({ endpoint, calls, failed }) => [endpoint, calls, failed]),
    [
      ["GET /info", 5, 5],
      ["POST /new", 5, 1],
    ],
  );
  assert.deepEqual(history.at(-1), { p95Ms: 40, calls: 10, failed: 6 });
  assert.deepEqual([history.length, history.at(-2)], [60, { p95Ms: null, calls: 0, failed: 0 }]);
  assert.ok(activity.busy);
  pass(5);
  assert.equal(activity.busy, false);
  assert.equal(activity.upstream.minute.calls, 10);
  assert.deepEqual(activity.upstream.history.at(-2), { p95Ms: 40, calls: 10, failed: 6 });
  pass(55);
  assert.equal(activity.upstream.health, "idle");
  assert.equal(activity.upstream.endpoints.length, 2, "of five minutes");
  pass(239);
  assert.equal(activity.upstream.endpoints.length, 2);
  pass(1);
  assert.deepEqual(activity.upstream.endpoints, []);
});

test("a service that stopped answering is failing, however well it went before", () => {
  const { activity, call, pass } = rig();
  for (let n = 0; n < 100; n++) call("200");
  pass(6);
  call("UNAVAILABLE");
  assert.equal(activity.upstream.health, "failing");
  call("200");
  assert.equal(activity.upstream.health, "degraded");
});

test("an open breaker and refused credentials decide the health, whatever the figures", () => {
  const { activity, report, call } = rig();
  call("200");
  report("breaker", { account, calls: "other", state: "open" });
  report("breaker", { account, calls: "money", state: "halfOpen" });
  assert.deepEqual(activity.upstream.breakers, { money: "halfOpen", other: "open" });
  assert.equal(activity.upstream.health, "failing");
  for (const calls of ["other", "money"] as const) {
    report("breaker", { account, calls, state: "closed" });
  }
  assert.equal(activity.upstream.health, "healthy");
  report("credentials", { account, accepted: false });
  assert.equal(activity.upstream.health, "refused");
});

test("callbacks are counted over five minutes and since the start, the budget by the second", () => {
  const { activity, callback, call, pass } = rig();
  callback("stored");
  callback("stored", { account, resource: "payouts" });
  callback("not_found", {});
  callback("stored", { account: "other" });
  assert.deepEqual(activity.callbacks.recent, { stored: 2, not_found: 1 });
  assert.equal(activity.callbacks.history.at(-1), 3);
  pass(300);
  callback("duplicate");
  assert.deepEqual(activity.callbacks.recent, { duplicate: 1 });
  assert.deepEqual(activity.callbacks.total, { stored: 2, not_found: 1, duplicate: 1 });
  assert.deepEqual([activity.callbacks.history.length, activity.callbacks.history.at(-1)], [60, 1]);
  activity.budget(7);
  call("200");
  assert.equal(activity.budgetHistory.length, 180);
  assert.deepEqual(activity.budgetHistory.at(-1), { remaining: 7, sent: 1 });
  assert.deepEqual(activity.budgetHistory.at(-2), { remaining: null, sent: 0 });
  pass(1);
  assert.deepEqual(activity.budgetHistory.at(-2), { remaining: 7, sent: 1 });
  assert.deepEqual(activity.budgetHistory.at(-1), { remaining: null, sent: 0 });
});

test("what the reconciler did since the start is counted", () => {
  const { activity, report } = rig();
  assert.deepEqual(activity.reconciled, { settled: {}, probes: {}, givenUp: 0 });
  const call = { account, method: "CreatePayment", externalId: "e", was: "unknown" };
  report("settled", { ...call, by: "event" });
  report("probed", { account, lookupMethod: "resend", outcome: "asked" });
  report("probed", { account, lookupMethod: "resend", outcome: "asked" });
  report("givenUp", { ...call, startedAtMs: 0 });
  assert.deepEqual(activity.reconciled, {
    settled: { event: 1 },
    probes: { "resend asked": 2 },
    givenUp: 1,
  });
});

test("the ten busiest callers are listed with their waits", () => {
  const { activity, waited, pass } = rig();
  for (const waitedMs of [3, 4, 500]) waited("shop", waitedMs);
  waited("shop", 2_000, "RESOURCE_EXHAUSTED");
  pass(5);
  waited("back office", 0);
  waited("shop", 500);
  const [first, second] = activity.callers;
  assert.deepEqual([first?.caller, first?.calls, first?.refused], ["shop", 5, 1]);
  assert.ok((first?.p95WaitMs ?? 0) > 300 && (first?.p95WaitMs ?? 0) <= 500, "served calls alone");
  assert.deepEqual([second?.caller, second?.calls, second?.refused], ["back office", 1, 0]);
  for (let n = 0; n < 1_000; n++) waited(`customer:${n}`, 1);
  assert.equal(activity.callers.length, 10);
  assert.equal(activity.callers[0]?.caller, "others", "so many callers are counted together");
  pass(300);
  assert.deepEqual(activity.callers, []);
});

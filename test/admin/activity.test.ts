import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createActivities } from "../../src/admin/activity.ts";

const account = "default";

/** The activities of two accounts, and what they hear of, on a clock that the test moves. */
function rig(t: TestContext) {
  let nowMs = 1e9;
  t.mock.method(performance, "now", () => nowMs);
  let remaining = 7;
  const activities = createActivities([account, "other"], () => remaining);
  const { report } = activities;
  return {
    activities,
    /** As it is when it is looked at. */
    activity: () => activities.of(account),
    report,
    left(tokens: number) {
      remaining = tokens;
    },
    call(outcome: string, of = account, durationMs = 40) {
      const ended = { endpoint: "POST /new", outcome, durationMs };
      report("upstreamCall", { account: of, ...ended, traceparent: undefined });
    },
    callback: (verdict: string, of?: string) =>
      report("callback", { verdict, requestId: "r", durationMs: 1, ...(of && { account: of }) }),
    waited: (name: string | undefined, waitedMs: number, refused?: string) =>
      report("tokenGiven", {
        ...{ account, priority: "read", waitedMs, refused },
        ...(name !== undefined && { caller: { name } }),
      }),
    pass(seconds: number) {
      nowMs += seconds * 1_000;
    },
  };
}

test("calls are counted by outcome, with their durations, in the last minute and by 5 seconds", (t) => {
  const { activity, call, pass } = rig(t);
  call("200", "other");
  assert.equal(activity().upstream.health, "idle", "another account's calls are not shown");
  assert.equal(activity().upstream.minute.p50Ms, null);
  for (const outcome of ["200", "404", "CANCELLED", "429"]) call(outcome);
  assert.equal(activity().upstream.health, "healthy", "a refusal is an answer");
  call("500");
  assert.equal(activity().upstream.health, "degraded");
  for (let ms = 1; ms <= 5; ms++) call("UNKNOWN", account, 40 + ms);
  const { upstream, history } = activity();
  const { minute, health } = upstream;
  assert.deepEqual(minute, { calls: 10, failed: 6, p50Ms: 40, p95Ms: 45 });
  assert.equal(health, "failing");
  const step = { ...minute, remaining: 7 };
  assert.deepEqual(history.at(-1), step);
  const idle = { calls: 0, failed: 0, p50Ms: null, p95Ms: null, remaining: null };
  assert.deepEqual(history.at(-2), idle);
  pass(5);
  assert.deepEqual(activity().history.at(-2), step);
  assert.deepEqual(activity().upstream.minute, minute);
  pass(55);
  assert.equal(activity().upstream.health, "idle");
  pass(235);
  assert.deepEqual(activity().history[0], step);
  pass(5);
  assert.ok(activity().history.every(({ calls }) => calls === 0));
  assert.equal(activity().history.length, 60);
});

test("a service that stopped answering is failing, however well it went before", (t) => {
  const { activity, call, pass } = rig(t);
  for (let n = 0; n < 100; n++) call("200");
  pass(6);
  call("UNAVAILABLE");
  assert.equal(activity().upstream.health, "failing");
  call("200");
  assert.equal(activity().upstream.health, "degraded");
});

test("an open breaker and refused credentials decide the health, whatever the figures", (t) => {
  const { activities, activity, report, call, waited, pass } = rig(t);
  call("200");
  report("breaker", { account, calls: "other", state: "open" });
  report("breaker", { account, calls: "money", state: "open" });
  assert.deepEqual(activity().upstream.breakers, { money: "open", other: "open" });
  assert.equal(activity().upstream.health, "failing");
  for (const calls of ["other", "money"] as const) {
    report("breaker", { account, calls, state: "closed" });
  }
  assert.equal(activity().upstream.health, "healthy");
  report("credentials", { account, accepted: false });
  assert.equal(activity().upstream.health, "refused");
  pass(59);
  waited("shop", 1);
  pass(59);
  assert.deepEqual(activities.refused(), [account]);
  pass(1);
  assert.deepEqual(activities.refused(), [], "a minute after the last call");
  waited("shop", 1);
  assert.deepEqual(activities.refused(), [account]);
  report("credentials", { account, accepted: true });
  assert.deepEqual(activities.refused(), []);
});

test("callbacks are counted by verdict over five minutes, also those to no account", (t) => {
  const { activities, callback, pass } = rig(t);
  callback("stored", account);
  pass(5);
  callback("stored", account);
  callback("not_found");
  callback("stored", "other");
  assert.deepEqual(activities.of(account).callbacks, { stored: 2, not_found: 1 });
  pass(300);
  callback("duplicate", account);
  assert.deepEqual(activities.of(account).callbacks, { duplicate: 1 });
});

test("the budget has the fewest tokens that were left, and the calls that were sent", (t) => {
  const { activity, call, left, waited, pass } = rig(t);
  waited(undefined, 0);
  left(9);
  activity();
  call("200");
  const steps = () => activity().history.map(({ remaining, calls }) => [remaining, calls]);
  assert.deepEqual(steps().slice(-2), [
    [null, 0],
    [7, 1],
  ]);
  pass(5);
  assert.deepEqual(steps().at(-2), [7, 1]);
  assert.deepEqual(activity().callers, [], "the gateway's own look-ups are no caller's");
});

test("the ten busiest callers are listed with their longest waits", (t) => {
  const { activity, waited, pass } = rig(t);
  for (const waitedMs of [3, 500, 4]) waited("shop", waitedMs);
  waited("shop", 2_000, "RESOURCE_EXHAUSTED");
  pass(5);
  waited("back office", 0);
  waited("shop", 5);
  assert.deepEqual(activity().callers, [
    { caller: "shop", calls: 5, refused: 1, longestWaitMs: 500 },
    { caller: "back office", calls: 1, refused: 0, longestWaitMs: 0 },
  ]);
  for (let n = 0; n < 1_000; n++) waited(`customer:${n}`, 1);
  assert.equal(activity().callers.length, 10);
  assert.equal(activity().callers[0]?.caller, "others", "so many callers are counted together");
  pass(300);
  assert.deepEqual(activity().callers, []);
});

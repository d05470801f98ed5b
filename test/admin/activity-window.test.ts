import assert from "node:assert/strict";
import { test } from "node:test";
import { createActivityWindow } from "../../src/admin/activity-window.ts";
import { Durations } from "../../src/admin/durations.ts";
import { Ring } from "../../src/admin/ring.ts";

const start = 1_700_000_000_000;

test("a ring keeps the last steps and drops older ones", () => {
  let now = start;
  const create = () => ({ count: 0 });
  const ring = new Ring({ stepMs: 1_000, length: 3, create, now: () => now });
  ring.current.count += 1;
  ring.current.count += 1;
  now += 2_000;
  ring.current.count += 1;
  const counts = (length: number) => ring.last(length).map((slot) => slot?.count);
  assert.deepEqual(counts(3), [2, undefined, 1]);
  assert.deepEqual(counts(2), [undefined, 1]);
  assert.deepEqual(counts(9), [2, undefined, 1], "no more than it has");
  now += 1_000;
  assert.deepEqual(counts(3), [undefined, 1, undefined]);
  now += 3_600_000;
  assert.deepEqual(counts(3), [undefined, undefined, undefined]);
});

test("quantiles are accurate to about a third", () => {
  const durations = new Durations();
  assert.equal(durations.quantile(0.5), undefined);
  for (let ms = 1; ms <= 1_000; ms++) durations.add(ms);
  for (const share of [0.1, 0.5, 0.9, 0.95, 0.99]) {
    const told = durations.quantile(share) ?? 0;
    assert.ok(Math.abs(told - share * 1_000) <= share * 333, `${share}: ${told}`);
  }
  durations.add(1e9);
  assert.equal(durations.quantile(1), 60_000, "longer than the longest class");
});

test("calls are counted by outcome in the last minute, and by endpoint in five minutes", () => {
  let now = start;
  const recent = createActivityWindow(() => now);
  assert.equal(recent.upstream.health, "idle");
  const call = (outcome: string, endpoint = "POST /new") =>
    recent.call({ endpoint, outcome, durationMs: 40 });
  call("200");
  call("404");
  call("CANCELLED");
  assert.equal(recent.upstream.health, "healthy", "a refusal is an answer");
  call("429");
  call("500");
  assert.equal(recent.upstream.health, "degraded");
  for (let n = 0; n < 5; n++) call("UNKNOWN", "GET /info");
  const { minute, health, endpoints } = recent.upstream;
  assert.deepEqual([minute.calls, minute.failed, minute.limited], [10, 6, 1]);
  assert.equal(health, "failing");
  assert.deepEqual(
    endpoints.map(({ endpoint, calls, failed }) => [endpoint, calls, failed]),
    [
      ["GET /info", 5, 5],
      ["POST /new", 5, 1],
    ],
  );
  assert.ok(recent.busy);
  now += 61_000;
  assert.equal(recent.upstream.health, "idle");
  assert.equal(recent.upstream.endpoints.length, 2, "of five minutes");
  assert.equal(recent.busy, false);
  now += 300_000;
  assert.deepEqual(recent.upstream.endpoints, []);
});

test("an open breaker and refused credentials decide the health, whatever the figures", () => {
  const recent = createActivityWindow();
  recent.call({ endpoint: "POST /new", outcome: "200", durationMs: 1 });
  recent.breaker("other", "open");
  assert.equal(recent.upstream.health, "failing");
  recent.breaker("other", "closed");
  assert.equal(recent.upstream.health, "healthy");
  recent.credentials(false);
  assert.equal(recent.upstream.health, "refused");
});

test("callbacks are counted over five minutes and since the start, the budget by the second", () => {
  let now = start;
  const recent = createActivityWindow(() => now);
  recent.callback("stored");
  recent.callback("stored");
  now += 301_000;
  recent.callback("duplicate");
  assert.deepEqual(recent.callbacks.recent, { duplicate: 1 });
  assert.deepEqual(recent.callbacks.total, { stored: 2, duplicate: 1 });
  assert.deepEqual([recent.callbacks.history.length, recent.callbacks.history.at(-1)], [60, 1]);
  recent.budget(7);
  assert.deepEqual(recent.budgetHistory.at(-1), { remaining: 7, sent: 0 });
  assert.deepEqual(recent.budgetHistory.at(-2), { remaining: null, sent: 0 });
});

test("the ten busiest callers are listed with their waits", () => {
  let now = start;
  const recent = createActivityWindow(() => now);
  for (const waitedMs of [3, 4, 500]) recent.waited({ caller: "shop", waitedMs });
  recent.waited({ caller: "shop", waitedMs: 2_000, refused: "RESOURCE_EXHAUSTED" });
  recent.waited({ caller: "back office", waitedMs: 0 });
  const [first, second] = recent.callers;
  assert.deepEqual([first?.caller, first?.calls, first?.refused], ["shop", 4, 1]);
  assert.ok((first?.p95WaitMs ?? 0) > 300 && (first?.p95WaitMs ?? 0) <= 500, "served calls alone");
  assert.deepEqual([second?.caller, second?.calls, second?.refused], ["back office", 1, 0]);
  for (let n = 0; n < 1_000; n++) recent.waited({ caller: `customer:${n}`, waitedMs: 1 });
  assert.equal(recent.callers.length, 10);
  assert.equal(recent.callers[0]?.caller, "others", "so many callers are counted together");
  now += 301_000;
  assert.deepEqual(recent.callers, []);
});

test("the number of names that are kept is bounded", () => {
  const recent = createActivityWindow(() => start);
  for (let n = 0; n < 10_000; n++) {
    recent.callback(`verdict-${n}`);
    recent.call({ endpoint: `GET /${n}`, outcome: "200", durationMs: 1 });
    recent.settled(`by-${n}`);
  }
  assert.equal(Object.keys(recent.callbacks.total).length, 50);
  assert.equal(recent.upstream.endpoints.length, 50);
  assert.equal(Object.keys(recent.reconciled.settled).length, 50);
});

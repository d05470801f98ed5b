import assert from "node:assert/strict";
import { test } from "node:test";
import { createRetryBudget, decideRetry, type FailedRead } from "../../src/upstream/retry.ts";

const badLuck: FailedRead = {
  verdict: "failed",
  retries: 0,
  leftMs: 30_000,
  breakerOpen: false,
  withinBudget: true,
  jitter: 0.5,
};

test("a failed read is retried at most twice", () => {
  assert.equal(decideRetry(badLuck), 50);
  assert.equal(decideRetry({ ...badLuck, retries: 1 }), 100);
  assert.equal(decideRetry({ ...badLuck, retries: 2 }), "tries");
});

test("jitter scales the pause from zero to its full length", () => {
  assert.equal(decideRetry({ ...badLuck, jitter: 0 }), 0);
  assert.equal(decideRetry({ ...badLuck, jitter: 1 }), 100);
});

const refusals: Array<[why: string, change: Partial<FailedRead>]> = [
  ["answered", { verdict: "answered" }],
  ["timeout", { verdict: "timeout" }],
  ["ended", { verdict: "nothing" }],
  ["breaker", { breakerOpen: true }],
  ["deadline", { leftMs: 50 }],
  ["deadline", { leftMs: -1, jitter: 0 }],
  ["budget", { withinBudget: false }],
];
for (const [why, change] of refusals) {
  test(`no retry for ${JSON.stringify(change)}: ${why}`, () => {
    assert.equal(decideRetry({ ...badLuck, ...change }), why);
  });
}

test("retries are at most a tenth of the reads of the last ten seconds", () => {
  let now = 1_234;
  const budget = createRetryBudget(() => now);
  for (let n = 0; n < 500; n++) budget.onRead();
  assert.equal(spend(budget), 50);
  now += 5_000;
  assert.equal(spend(budget), 0);
  for (let n = 0; n < 100; n++) budget.onRead();
  assert.equal(spend(budget), 10);
  now += 10_000;
  assert.equal(spend(budget), 10, "what is past counts no more");
});

test("with few reads, one retry a second is allowed", () => {
  let now = 0;
  const budget = createRetryBudget(() => now);
  let retries = 0;
  for (; now < 60_000; now += 1_000) {
    budget.onRead();
    retries += spend(budget);
  }
  assert.equal(retries, 60);
});

test("no window of time has more retries than its share", () => {
  let now = 0;
  const budget = createRetryBudget(() => now);
  const retriedAt: number[] = [];
  for (; now < 30_000; now += 5) {
    budget.onRead();
    if (!budget.allows()) continue;
    budget.onRetry();
    retriedAt.push(now);
  }
  // 200 reads a second allow 200 retries in ten seconds. The window moves in steps of one second.
  for (const at of retriedAt) {
    const within = retriedAt.filter((other) => other >= at && other < at + 9_000).length;
    assert.ok(within <= 200, `${within} retries from ${at} on`);
  }
  assert.ok(retriedAt.length >= 500, `${retriedAt.length} retries`);
});

function spend(budget: ReturnType<typeof createRetryBudget>): number {
  let spent = 0;
  for (; budget.allows(); spent++) budget.onRetry();
  return spent;
}

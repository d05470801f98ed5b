import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import type { Priority } from "../../src/ratelimit/bucket.ts";
import { readRateLimitHeaders } from "../../src/ratelimit/headers.ts";
import { Budget } from "../../src/ratelimit/local/budget.ts";

describe("the budget", () => {
  it("grants at most the limit in any second, for any sequence of calls", () => {
    const asks = fc.array(
      fc.record({
        afterMs: fc.integer({ min: 0, max: 400 }),
        priority: fc.constantFrom<Priority>("money", "read"),
      }),
      { minLength: 50, maxLength: 300 },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        asks,
        (limit, reserve, calls) => {
          const budget = new Budget({ initialLimit: limit, reserve }, 0);
          const times: number[] = [];
          let now = 0;
          for (const { afterMs, priority } of calls) {
            now += afterMs;
            if (budget.nextTokenAt(priority, 0, now) > now) continue;
            budget.take(now);
            times.push(now);
          }
          for (let at = limit; at < times.length; at++) {
            assert.ok(times[at]! - times[at - limit]! >= 1_000);
          }
        },
      ),
    );
  });

  it("serves reads at the full rate whatever the reserve", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (limit, reserve) => {
          const budget = new Budget({ initialLimit: limit, reserve }, 0);
          let now = 0;
          let taken = 0;
          for (; now < 20_000; taken++) {
            budget.take(now);
            now = Math.max(now, budget.nextTokenAt("read", 0, now));
          }
          assert.ok(taken >= 0.9 * 20 * limit, `${taken} of ${20 * limit}`);
        },
      ),
    );
  });

  it("never gains tokens from an answer", () => {
    const header = fc.option(fc.oneof(fc.integer({ min: -5, max: 200 }).map(String), fc.string()), {
      nil: undefined,
    });
    const answers = fc.array(
      fc.record({ afterMs: fc.integer({ min: 0, max: 300 }), limit: header, remaining: header }),
    );
    fc.assert(
      fc.property(answers, (all) => {
        const budget = new Budget({ initialLimit: 20, reserve: 0 }, 0);
        let now = 0;
        for (const { afterMs, limit, remaining } of all) {
          const taken = budget.take(now);
          now += afterMs;
          const before = budget.status(now).remaining;
          budget.observe(taken, readRateLimitHeaders({ limit, remaining }), now);
          assert.ok(budget.status(now).remaining <= before);
        }
      }),
    );
  });

  it("uses no more than its share of the limit", () => {
    const budget = new Budget({ initialLimit: 50, reserve: 0, share: 0.2 }, 0);
    assert.deepEqual(budget.status(0), { limit: 10, remaining: 10, resetSeconds: 0 });
    let taken = 0;
    for (let now = 0; now < 10_000; now += 10) {
      if (budget.nextTokenAt("read", 0, now) > now) continue;
      taken++;
      budget.observe(budget.take(now), { limit: 50, remaining: 30, resetSeconds: 1 }, now);
    }
    assert.ok(taken >= 90 && taken <= 100, `${taken} taken`);
  });

  it("grants less than one call a second for a share of less than one", () => {
    const budget = new Budget({ initialLimit: 1, reserve: 0, share: 0.25 }, 0);
    assert.equal(budget.status(0).limit, 1);
    budget.take(0);
    assert.equal(budget.nextTokenAt("read", 0, 0), 4_200);
  });

  it("can begin empty, and fills within the first second or so", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0, startEmpty: true }, 0);
    assert.equal(budget.status(0).remaining, 0);
    assert.ok(budget.nextTokenAt("money", 0, 0) >= 1_000);
    assert.equal(budget.status(1_100).remaining, 10);
  });

  it("widens its window after an unexplained rejection, and narrows it slowly", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    const windows = [budget.windowMs(0)];
    for (let rejections = 0; rejections < 3; rejections++) {
      budget.reject(budget.take(0), { resetSeconds: 1 }, 0);
      windows.push(budget.windowMs(0));
    }
    assert.deepEqual(windows, [1_050, 1_100, 1_150, 1_250]);
    assert.equal(budget.windowMs(30_000), 1_150);
    assert.ok(budget.windowMs(600_000) < 1_051);
  });

  it("widens its window once for rejected calls that were in flight together", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    const together = [budget.take(0), budget.take(0), budget.take(0)];
    for (const taken of together) budget.reject(taken, { resetSeconds: 1 }, 0);
    assert.equal(budget.windowMs(0), 1_100);
  });

  it("keeps its window after a rejection that names a lower limit", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    budget.reject(budget.take(0), { limit: 5, remaining: 0, resetSeconds: 1 }, 0);
    assert.equal(budget.windowMs(0), 1_050);
    assert.equal(budget.capacity, 5);
  });

  it("counts earlier calls against a limit that drops", () => {
    const budget = new Budget({ initialLimit: 50, reserve: 0 }, 0);
    for (let calls = 0; calls < 40; calls++) budget.take(calls * 20);
    budget.observe(budget.take(800), { limit: 20 }, 800);
    // The 20th latest take was at 420 ms: one window later fewer than 20 are out.
    assert.equal(budget.nextTokenAt("money", 0, 800), 420 + 1_050);
  });

  it("compares Remaining with what was left right after the call's take", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    const first = budget.take(0);
    for (let calls = 0; calls < 5; calls++) budget.take(10);
    budget.observe(first, { limit: 10, remaining: 9 }, 20);
    assert.equal(budget.status(20).remaining, 4);
    budget.observe(budget.take(30), { limit: 10, remaining: 1 }, 40);
    assert.equal(budget.status(40).remaining, 1);
  });

  it("subtracts later takes from the Remaining of an earlier call", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    const first = budget.take(0);
    for (let calls = 0; calls < 3; calls++) budget.take(10);
    budget.observe(first, { limit: 10, remaining: 5 }, 20);
    assert.equal(budget.status(20).remaining, 2);
  });

  it("subtracts a shortage only once when two answers show it", () => {
    const budget = new Budget({ initialLimit: 10, reserve: 0 }, 0);
    const [first, second] = [budget.take(0), budget.take(0)];
    budget.observe(first, { remaining: 5 }, 10);
    budget.observe(second, { remaining: 4 }, 10);
    assert.equal(budget.status(10).remaining, 4);
  });
});

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
    assert.deepEqual(budget.status(1_050), { limit: 10, remaining: 10, fullAt: -Infinity });
    let taken = 0;
    for (let now = 1_050; now < 11_050; now += 10) {
      if (budget.nextTokenAt("read", 0, now) > now) continue;
      taken++;
      budget.observe(budget.take(now), { limit: 50, remaining: 30, resetSeconds: 1 }, now);
    }
    assert.ok(taken >= 90 && taken <= 100, `${taken} taken`);
  });

  it("grants less than one call a second for a share of less than one", () => {
    const budget = new Budget({ initialLimit: 1, reserve: 0, share: 0.25 }, 0);
    assert.equal(budget.status(0).limit, 1);
    budget.take(4_200);
    assert.equal(budget.nextTokenAt("read", 0, 4_200), 2 * 4_200);
  });

  it("of a share begins empty, and fills after the first second and its margin", () => {
    const budget = new Budget({ initialLimit: 20, reserve: 0, share: 0.5 }, 0);
    assert.equal(budget.status(0).remaining, 0);
    assert.ok(budget.nextTokenAt("money", 0, 0) >= 1_000);
    assert.deepEqual(
      [1_049, 1_050].map((at) => budget.status(at).remaining),
      [0, 10],
    );
  });
});

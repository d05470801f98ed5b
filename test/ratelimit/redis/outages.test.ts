import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { withoutRedis } from "../../redis/server.ts";
import { figuresOf, type LoadResult, report } from "../shared-load.ts";
import {
  assertBack,
  assertBudgetHolds,
  type Outage,
  outages,
  suffer,
  tampering,
} from "./outages.ts";

const times = { beforeMs: 2_000, outMs: 2_000, afterMs: 4_000 };

function assertOverrun(result: LoadResult): void {
  assert.throws(() => assertBudgetHolds(result), /rejected|in a second/);
}

const flushes: Outage = {
  async begin(redis) {
    for (let times = 0; times < 3; times++) {
      await redis.command("FLUSHALL");
      await delay(100);
    }
  },
};

/** Three replicas of one account at 5 times its limit, against a strict upstream. */
describe("when Redis", { skip: withoutRedis, concurrency: true, timeout: 60_000 }, () => {
  for (const [name, outage] of Object.entries(outages)) {
    it(`${name}, the budget holds and all are back within 2 s`, (t) =>
      suffer(t, outage, times, (result) => {
        report(name, figuresOf(result));
        assertBudgetHolds(result);
        // Half: other tests may keep this machine busy. The long form asks for more.
        assertBack(result, outage, 0.5);
      }));
  }

  const controls = {
    "is flushed again and again, the budget is overrun if nobody minds": {
      outage: flushes,
      tamper: tampering({ recent: false }),
    },
    "is out of memory, the budget is overrun if nobody tells what it used": {
      outage: outages["is out of memory"]!,
      tamper: tampering({ returning: false, spent: [] }),
    },
    "stands still, the budget is overrun if nobody counts the others": {
      outage: outages["stands still"]!,
      tamper: tampering({}, { replicas: 1 }),
    },
  };
  for (const [name, { outage, tamper }] of Object.entries(controls)) {
    // Chance has its part in it: that it happens at all is what a control has to show.
    it(`${name} (control)`, (t) =>
      suffer(t, outage, times, assertOverrun, { tamper })
        .catch(() => suffer(t, outage, times, assertOverrun, { tamper }))
        .catch(() => suffer(t, outage, times, assertOverrun, { tamper })));
  }
});

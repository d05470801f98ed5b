import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { assertBack, assertBudgetHolds, outages, suffer } from "../ratelimit/redis-outages.ts";
import {
  assertGoals,
  figuresOf,
  type LoadOptions,
  report,
  runLoad,
} from "../ratelimit/shared-load.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";

/** The long forms of test/ratelimit/redis-load.test.ts and redis-outages.test.ts, one at a time. */
describe("replicas that share a budget for 20 s", { skip: withoutRedis }, () => {
  for (const replicas of [1, 2, 3, 4, 8]) {
    it(`keep to it and use it, ${replicas} of them`, async (t) => {
      const figures = figuresOf(await load(t, { replicas }));
      report(`${replicas} replicas`, figures);
      assertGoals(figures, 0.9);
    });
  }

  it("follow a limit that drops midway", async (t) => {
    const figures = figuresOf(
      await load(t, {
        moneyShare: 0.03,
        async script({ upstream }) {
          await delay(10_000);
          upstream.limit = 20;
        },
      }),
    );
    report("drop to 20", figures);
    assert.ok(figures.avoidable <= figures.sent / 1_000);
    assert.ok(figures.used >= 0.9, `${figures.used} of the budget used`);
  });

  it("go on when one of three is killed", async (t) => {
    const figures = figuresOf(
      await load(t, {
        async script(running) {
          await delay(10_000);
          running.killReplica();
        },
      }),
    );
    report("one killed", figures);
    assertGoals(figures, 0.9);
  });

  for (const [name, outage] of Object.entries(outages)) {
    it(`keep to it when Redis ${name}`, async (t) => {
      const times = { beforeMs: 5_000, outMs: 5_000, afterMs: 5_000 };
      const result = await suffer(t, outage, times);
      report(name, figuresOf(result));
      assertBudgetHolds(result);
      assertBack(result, outage, 0.85);
    });
  }
});

async function load(t: TestContext, options: Partial<LoadOptions>) {
  const redis = await startRedis();
  t.after(() => redis.close());
  return await runLoad({ redisUrl: redis.url, limit: 50, seconds: 20, ...options });
}

import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { assertBack, assertBudgetHolds, outages, suffer } from "../ratelimit/redis/outages.ts";
import {
  assertGoals,
  calmly,
  figuresOf,
  type LoadOptions,
  type LoadResult,
  report,
  runLoad,
} from "../ratelimit/shared-load.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";

/** The long forms of test/ratelimit/redis/load.test.ts and redis-outages.test.ts, one at a time. */
describe("replicas that share a budget for 20 s", { skip: withoutRedis }, () => {
  for (const replicas of [1, 2, 3, 4, 8]) {
    it(`keep to it and use it, ${replicas} of them`, (t) =>
      load(t, { replicas }, (result) => {
        report(`${replicas} replicas`, figuresOf(result));
        assertGoals(figuresOf(result), 0.9);
      }));
  }

  it("follow a limit that drops midway", async (t) => {
    const script: Partial<LoadOptions>["script"] = async ({ upstream }) => {
      await delay(10_000);
      upstream.limit = 20;
    };
    await load(t, { moneyShare: 0.03, script }, (result) => {
      const { avoidable, sent, used } = figuresOf(result);
      report("drop to 20", figuresOf(result));
      assert.ok(avoidable <= sent / 1_000, `${avoidable} of ${sent} rejected`);
      assert.ok(used >= 0.9, `${used} of the budget used`);
    });
  });

  it("go on when one of three is killed", async (t) => {
    const script: Partial<LoadOptions>["script"] = async (running) => {
      await delay(10_000);
      running.killReplica();
    };
    await load(t, { script }, (result) => {
      report("one killed", figuresOf(result));
      assertGoals(figuresOf(result), 0.9);
    });
  });

  for (const [name, outage] of Object.entries(outages)) {
    it(`keep to it when Redis ${name}`, async (t) => {
      const times = { beforeMs: 5_000, outMs: 5_000, afterMs: 5_000 };
      await suffer(t, outage, times, (result) => {
        report(name, figuresOf(result));
        assertBudgetHolds(result);
        assertBack(result, outage, 0.85);
      });
    });
  }
});

async function load(
  t: TestContext,
  options: Partial<LoadOptions>,
  check: (result: LoadResult) => void,
): Promise<void> {
  const redis = await startRedis();
  t.after(() => redis.close());
  const all = { redisUrl: redis.url, limit: 50, seconds: 20, ...options };
  await calmly(() => runLoad(all), check);
}

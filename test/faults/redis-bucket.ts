import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createRedisBucket } from "../../src/ratelimit/queued-bucket.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { accountKeys } from "../../src/redis/keys.ts";
import { Secret } from "../../src/secrets/secret.ts";
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
import { realClock, reportTurns, runTurns } from "../ratelimit/turns-load.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { until } from "../until.ts";

/** The long forms of test/ratelimit/redis/load.test.ts and outages.test.ts, one at a time. */
describe("replicas that share a budget for 20 s", { skip: withoutRedis }, () => {
  for (const replicas of [1, 2, 3, 4, 8]) {
    it(`keep to the budget and use it, ${replicas} of them`, (t) =>
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

  it("let a caller beside one with 100 times its calls wait two turns at most", async (t) => {
    const server = await startRedis();
    t.after(() => server.close());
    const keys = accountKeys("test", randomUUID());
    const replicas = await Promise.all(
      Array.from({ length: 3 }, async () => {
        const redis = connectRedis(new Secret(server.url), () => {});
        t.after(() => redis.close());
        await until(async () => redis.client.status === "ready");
        const { client } = redis;
        const options = { client, keys, replicaId: randomUUID() };
        return createRedisBucket({ ...options, initialLimit: 50, reserve: 0.2, maxWaitMs: 1_500 });
      }),
    );
    const loop = monitorEventLoopDelay({ resolution: 1 });
    loop.enable();
    const figures = await runTurns({
      ...{ clock: realClock, buckets: replicas, limit: 50, seconds: 60, turns: true },
      callers: [
        { caller: { name: "large" }, perSecond: 125 },
        { caller: { name: "small" }, perSecond: 1.25 },
      ],
    });
    reportTurns("100 : 1 in real time", figures);
    const [, small] = figures.callers;
    const turnMs = (2 * 1_050) / 50;
    // Time for which this process was blocked does not count.
    const stalledMs = loop.max / 1e6;
    assert.ok(small && small.p99WaitMs <= 2 * turnMs + stalledMs, `${small?.p99WaitMs} ms`);
    assert.equal(small.refused, 0);
    assert.ok(figures.jain >= 0.95, `Jain's index ${figures.jain}`);
    assert.ok(figures.used >= 0.9, `${figures.used} of the budget used`);
    assert.ok(figures.rejected <= figures.sent / 1_000, `${figures.rejected} rejected`);
  });

  for (const [name, outage] of Object.entries(outages)) {
    it(`keep to the budget when Redis ${name}`, async (t) => {
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

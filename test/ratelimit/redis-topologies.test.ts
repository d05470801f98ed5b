import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startCluster } from "../redis/cluster.ts";
import { startSentinelSet } from "../redis/sentinel.ts";
import { until, withoutRedis } from "../redis/server.ts";
import { assertGoals, figuresOf, report, runLoad, usedBetween } from "./shared-load.ts";

const LIMIT = 50;

describe("replicas at 5 times the limit", { skip: withoutRedis, concurrency: true }, () => {
  it("share the budget through a cluster", { timeout: 60_000 }, async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.close());
    const result = await runLoad({ redisUrl: cluster.url, limit: LIMIT, seconds: 4 });
    const figures = figuresOf(result);
    report("a cluster", figures);
    assertGoals(figures, 0.7);
  });

  it("keep to the budget when Sentinel makes another master", { timeout: 60_000 }, async (t) => {
    const set = await startSentinelSet();
    t.after(() => set.close());
    const result = await runLoad({
      redisUrl: set.url,
      limit: LIMIT,
      seconds: 0,
      async script(load) {
        await delay(2_000);
        const before = await set.masterPort();
        load.mark("away");
        await set.servers[0]!.kill();
        await until(async () => (await set.masterPort()) !== before);
        load.mark("back");
        await delay(4_000);
      },
    });
    const figures = figuresOf(result);
    report("a failover by Sentinel", figures);
    assert.equal(figures.rejected, 0);
    assert.ok(figures.mostInAnySecond <= LIMIT, `${figures.mostInAnySecond} in a second`);
    const [away, back] = [result.marks.get("away")!, result.marks.get("back")!];
    const returns = result.changes.filter(({ at, source }) => source === "redis" && at > away);
    assert.ok(returns.length >= 3);
    for (const { at } of returns.slice(0, 3))
      assert.ok(at < back + 2_000, `back ${at - back} ms after`);
    const used = usedBetween(result, LIMIT, back + 2_000, back + 4_000);
    assert.ok(used >= 0.5, `${used} of the budget used after the failover`);
  });
});

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startCluster } from "../redis/cluster.ts";
import { startSentinelSet } from "../redis/sentinel.ts";
import { until, withoutRedis } from "../redis/server.ts";
import { figuresOf, report, runLoad, usedBetween } from "./shared-load.ts";

const LIMIT = 50;

describe("replicas at 5 times the limit", { skip: withoutRedis, concurrency: true }, () => {
  it("share the budget through a cluster", { timeout: 60_000 }, async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.close());
    const result = await runLoad({ redisUrl: cluster.url, limit: LIMIT, seconds: 4 });
    const figures = figuresOf(result);
    report("a cluster", figures);
    assert.equal(figures.rejected, 0);
    assert.ok(figures.used >= 0.9, `${figures.used} of the budget used`);
    assert.deepEqual(result.changes, []);
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
    const back = result.marks.get("back")!;
    assert.ok(result.changes.slice(0, 3).every(({ source }) => source === "local"));
    const returns = result.changes.filter(({ source }) => source === "redis").slice(0, 3);
    assert.equal(returns.length, 3);
    for (const { at } of returns) assert.ok(at < back + 2_000, `back ${at - back} ms after`);
    const used = usedBetween(result, LIMIT, back + 2_000, back + 4_000);
    assert.ok(used >= 0.8, `${used} of the budget used after the failover`);
  });
});

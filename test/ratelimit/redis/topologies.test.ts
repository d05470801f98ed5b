import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startCluster } from "../../redis/cluster.ts";
import { type SentinelSet, startSentinelSet } from "../../redis/sentinel.ts";
import { until, withoutRedis } from "../../redis/server.ts";
import {
  assertGoals,
  calmly,
  figuresOf,
  type LoadOptions,
  report,
  runLoad,
  usedBetween,
} from "../shared-load.ts";

const LIMIT = 50;

const options = { skip: withoutRedis, concurrency: true, timeout: 90_000 };

describe("replicas at 5 times the limit", options, () => {
  it("share the budget through a cluster", async (t) => {
    const cluster = await startCluster();
    t.after(() => cluster.close());
    const load = () => runLoad({ redisUrl: cluster.url, limit: LIMIT, seconds: 4 });
    await calmly(load, (result) => {
      report("a cluster", figuresOf(result));
      assertGoals(figuresOf(result), 0.7);
    });
  });

  it("keep to the budget when Sentinel makes another master", async (t) => {
    const load = async () => {
      const set = await startSentinelSet();
      t.after(() => set.close());
      return await runLoad({ redisUrl: set.url, limit: LIMIT, seconds: 0, script: failover(set) });
    };
    await calmly(load, (result) => {
      const figures = figuresOf(result);
      report("a failover by Sentinel", figures);
      assert.equal(figures.rejected, 0);
      assert.ok(figures.mostInAnySecond <= LIMIT, `${figures.mostInAnySecond} in a second`);
      const [away, back] = [result.marks.get("away")!, result.marks.get("back")!];
      const returns = result.changes.filter(({ at, source }) => source === "redis" && at > away);
      assert.ok(returns.length >= 3);
      for (const { at } of returns.slice(0, 3))
        assert.ok(at < back + 2_000, `${at - back} ms after`);
      const used = usedBetween(result, LIMIT, back + 2_000, back + 4_000);
      assert.ok(used >= 0.5, `${used} of the budget used after the failover`);
    });
  });
});

function failover(set: SentinelSet): NonNullable<LoadOptions["script"]> {
  return async (load) => {
    await delay(2_000);
    const before = await set.masterPort();
    load.mark("away");
    await set.servers[0]!.kill();
    await until(async () => (await set.masterPort()) !== before);
    load.mark("back");
    await delay(4_000);
  };
}

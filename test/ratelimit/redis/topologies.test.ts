import { describe, it } from "node:test";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { seeded } from "../../random.ts";
import { startCluster } from "../../redis/cluster.ts";
import { startSentinelSet } from "../../redis/sentinel.ts";
import { withoutRedis } from "../../redis/server.ts";
import { closing } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { assertGoals, figuresOf, type LoadOptions, report, runLoad } from "../shared-load.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { assertBack, assertBudgetHolds, limit } from "./outages.ts";
import { Link, redisOn } from "./virtual-redis.ts";

const roundTripMs = 1;

/** On virtual time, so a busy machine does not matter. */
describe("replicas at 5 times the limit", { skip: withoutRedis, timeout: 120_000 }, () => {
  it("share the budget through a cluster", async (t) => {
    const cluster = closing(t, await startCluster());
    const clock = new VirtualClock();
    const result = await runLoad({
      ...{ redisUrl: cluster.url, limit, seconds: 8, clock, random: seeded(1) },
      tamper: (client) => redisOn(clock, client, roundTripMs),
    });
    report("a cluster", figuresOf(result));
    assertGoals(figuresOf(result), 0.9);
  });

  it("keep to the budget when Sentinel promotes another master", async (t) => {
    const set = closing(t, await startSentinelSet());
    const clock = new VirtualClock();
    const link = new Link();
    const clients: RedisClient[] = [];
    /** Kills the master, and waits until the clients of all replicas write to the next one. */
    const failOver = async () => {
      const before = await set.masterPort();
      await set.servers.find(({ port }) => port === before)?.kill();
      await until(async () => (await set.masterPort()) !== before);
      for (const client of clients) await until(async () => (await client.set("k", "v")) === "OK");
    };
    const script: LoadOptions["script"] = async (load) => {
      await load.pause(2_000);
      load.mark("away");
      link.cut();
      await load.pause(2_000);
      await clock.holdFor(failOver);
      link.open();
      load.mark("back");
      await load.pause(4_000);
    };
    const result = await runLoad({
      ...{ redisUrl: set.url, limit, seconds: 0, script, clock, random: seeded(1) },
      tamper: (client) => {
        clients.push(client);
        return redisOn(clock, client, roundTripMs, link);
      },
    });
    report("a failover by Sentinel", figuresOf(result));
    assertBudgetHolds(result);
    assertBack(result, { noticed: true }, 0.85);
  });
});

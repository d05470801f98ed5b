import { after, before, describe } from "node:test";
import { eventLogContract } from "../../contracts/event-log.ts";
import { type RedisCluster, startCluster } from "../../redis/cluster.ts";
import { withoutRedis } from "../../redis/server.ts";
import { redisHarness } from "./rig.ts";

describe("on a Redis cluster", { skip: withoutRedis }, () => {
  let cluster: RedisCluster;
  before(async () => {
    cluster = await startCluster();
  });
  after(() => cluster.close());

  eventLogContract("redis cluster", () => redisHarness(cluster.url));
});

import { randomUUID } from "node:crypto";
import { after, before, describe } from "node:test";
import { connectRedis, type RedisConnector } from "../../../src/redis/connect.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { testIntentStore } from "../../contracts/intent-store.ts";
import { type RedisCluster, startCluster } from "../../redis/cluster.ts";
import { withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { createRedisCalls } from "./calls-rig.ts";

describe("on a Redis cluster", { skip: withoutRedis }, () => {
  let cluster: RedisCluster;
  let redis: RedisConnector;
  before(async () => {
    cluster = await startCluster();
    redis = connectRedis(new Secret(cluster.url), () => {});
    await until(async () => redis.client.status === "ready");
  });
  after(async () => {
    await redis.close();
    await cluster.close();
  });

  testIntentStore("Redis cluster", async (given) => {
    const prefix = randomUUID();
    // A long time-out: a busy machine must not fail the contract tests.
    const about = { redis, prefix, answerMs: 20_000 };
    const make = () => createRedisCalls({ ...given, ...about });
    return [make(), make()];
  });
});

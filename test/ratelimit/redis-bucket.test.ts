import { after, before, describe } from "node:test";
import { randomUUID } from "node:crypto";
import type { TokenBucketOptions } from "../../src/ratelimit/bucket.ts";
import { createRedisBucket } from "../../src/ratelimit/redis-bucket.ts";
import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { accountKeys } from "../../src/redis/keys.ts";
import { Secret } from "../../src/secret.ts";
import { testTokenBucket } from "../contracts/token-bucket.ts";
import { type RedisServer, startRedis, until, withoutRedis } from "../redis/server.ts";

describe("on Redis", { skip: withoutRedis }, () => {
  let server: RedisServer;
  let redis: RedisConnector;
  before(async () => {
    server = await startRedis();
    redis = connectRedis(new Secret(server.url), () => {});
    await until(async () => redis.client.status === "ready");
  });
  after(async () => {
    await redis.close();
    await server.close();
  });

  testTokenBucket("the Redis bucket", (options: TokenBucketOptions) =>
    createRedisBucket({
      ...options,
      client: redis.client,
      keys: accountKeys("test", randomUUID()),
      replicaId: randomUUID(),
      onStateChange: (s, c) => console.log("STATE", s, c),
    }),
  );
});

import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { until } from "../until.ts";

/** A connection to Redis, which has answered. */
export async function connected(url: string): Promise<RedisConnector> {
  const redis = connectRedis(new Secret(url), () => {});
  await until(async () => (await redis.client.ping()) === "PONG");
  return redis;
}

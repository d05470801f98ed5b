import type { TestContext } from "node:test";
import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { closing } from "../of-suite.ts";
import { until } from "../until.ts";

type ConnectOptions = Parameters<typeof connectRedis>[2];

/** A connection to Redis, which notes its errors, and is closed after the test. */
export function connecting(t: TestContext, url: string, options?: ConnectOptions) {
  const errors: string[] = [];
  const redis = connectRedis(new Secret(url), ({ message }) => errors.push(message), options);
  return Object.assign(closing(t, redis), { errors });
}

/** A connection to Redis, which has answered. */
export async function connected(url: string): Promise<RedisConnector> {
  const redis = connectRedis(new Secret(url), () => {});
  await until(async () => (await redis.client.ping()) === "PONG");
  return redis;
}

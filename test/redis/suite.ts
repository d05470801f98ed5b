import { after, before, type TestContext } from "node:test";
import { connectRedis, type RedisConnector } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { until } from "../until.ts";

interface Closable {
  close(): unknown;
}

/** Started before the tests of the suite that calls this, and closed after them. */
export function ofSuite<T extends Closable>(start: () => Promise<T>): T {
  let started: T;
  before(async () => {
    started = await start();
  });
  after(() => started?.close());
  return new Proxy({} as T, {
    get(_, name) {
      const value: unknown = Reflect.get(started, name, started);
      return typeof value === "function" ? value.bind(started) : value;
    },
  });
}

/** Closes it after the test. */
export function closing<T extends Closable>(t: TestContext, opened: T): T {
  t.after(() => opened.close());
  return opened;
}

/** A connection to Redis, which has answered. */
export async function connected(url: string): Promise<RedisConnector> {
  const redis = connectRedis(new Secret(url), () => {});
  await until(async () => (await redis.client.ping()) === "PONG");
  return redis;
}

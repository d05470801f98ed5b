/**
 * How many tokens a second one process takes from Redis, and how many round trips a token costs, by
 * the number of concurrent callers: for the gateway's bucket, and for a plain EVALSHA token bucket
 * as comparison. Then the round trips of a token when replicas queue for a small budget. Needs
 * redis-server. Run: `node bench/redis-bucket.ts`.
 */
import { createHash, randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { QueuedBucket } from "../src/ratelimit/queued-bucket.ts";
import { connectRedis, type RedisConnector } from "../src/redis/connect.ts";
import { accountKeys } from "../src/redis/keys.ts";
import { Secret } from "../src/secrets/secret.ts";
import { type RedisServer, startRedis } from "../test/redis/server.ts";
import { until } from "../test/until.ts";

const SECONDS = 3;
const PLAIN = `
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local tokens, at = unpack(redis.call('HMGET', KEYS[1], 'tokens', 'at'))
local limit = tonumber(ARGV[1])
tokens = math.min(limit, (tonumber(tokens) or limit) + (now - (tonumber(at) or now)) * limit / 1000)
local granted = tokens >= 1
if granted then tokens = tokens - 1 end
redis.call('HSET', KEYS[1], 'tokens', tokens, 'at', now)
redis.call('EXPIRE', KEYS[1], 60)
return granted and 1 or 0`;
const { signal } = new AbortController();

const server = await startRedis();
try {
  for (const callers of [1, 10, 100, 1_000]) {
    await measure(`plain EVALSHA, ${callers} callers at once`, callers, plainTake);
    await measure(`the bucket, ${callers} callers at once`, callers, bucketTake);
  }
  for (const limit of [50, 1_000, 5_000]) await queue(limit, 3);
} finally {
  await server.close();
}

type Take = () => Promise<unknown>;

async function plainTake({ client }: RedisConnector) {
  const sha = createHash("sha1").update(PLAIN).digest("hex");
  const key = randomUUID();
  await client.eval(PLAIN, 1, key, 1_000_000);
  return { take: () => client.evalsha(sha, 1, key, 1_000_000), close: async () => {} };
}

async function bucketTake({ client }: RedisConnector, initialLimit = 1_000_000) {
  const bucket = new QueuedBucket({
    client,
    keys: accountKeys("bench", "default"),
    replicaId: randomUUID(),
    initialLimit,
    reserve: 0.2,
    maxWaitMs: 2_000,
  });
  const answer = { limit: String(initialLimit), remaining: String(initialLimit), reset: "1" };
  const take = async () => (await bucket.take({ priority: "read", signal })).observe(answer);
  await take();
  return { take, close: () => bucket.close() };
}

async function measure(
  name: string,
  callers: number,
  prepare: (redis: RedisConnector) => Promise<{ take: Take; close(): unknown }>,
): Promise<void> {
  const redis = await connected(server);
  const { take, close } = await prepare(redis);
  const waits: number[] = [];
  const before = await roundTrips();
  const since = performance.now();
  const caller = async () => {
    while (performance.now() - since < SECONDS * 1_000) {
      const asked = performance.now();
      await take();
      waits.push(performance.now() - asked);
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  const seconds = (performance.now() - since) / 1_000;
  const trips = (await roundTrips()) - before;
  waits.sort((a, b) => a - b);
  const p99 = waits[Math.floor(waits.length * 0.99)] ?? 0;
  console.log(
    `${name}: ${Math.round(waits.length / seconds)} takes a second, ` +
      `${(trips / waits.length).toFixed(3)} round trips a take, p99 ${p99.toFixed(2)} ms`,
  );
  await close();
  await redis.close();
}

/** Measures replicas whose callers want more tokens than the limit allows. */
async function queue(limit: number, replicas: number): Promise<void> {
  await server.command("FLUSHALL");
  const ends: (() => unknown)[] = [];
  const takes: Take[] = [];
  for (let replica = 0; replica < replicas; replica++) {
    const redis = await connected(server);
    const { take, close } = await bucketTake(redis, limit);
    takes.push(take);
    ends.push(close, () => redis.close());
  }
  let taken = 0;
  const before = await roundTrips();
  const since = performance.now();
  while (performance.now() - since < SECONDS * 1_000) {
    for (const take of takes) {
      for (let call = 0; call < (limit / 1_000) * 5; call++) {
        void take().then(
          () => taken++,
          () => {},
        );
      }
    }
    await delay(5);
  }
  const seconds = (performance.now() - since) / 1_000;
  const trips = (await roundTrips()) - before;
  console.log(
    `${replicas} replicas with 3 times the load of ${limit} a second: ` +
      `${Math.round(taken / seconds)} takes a second, ${(trips / taken).toFixed(3)} round trips a take`,
  );
  for (const end of ends) await end();
}

async function connected({ url }: RedisServer): Promise<RedisConnector> {
  const redis = connectRedis(new Secret(url), () => {});
  await until(async () => redis.client.status === "ready");
  return redis;
}

async function roundTrips(): Promise<number> {
  const text = String(await server.command("INFO", "commandstats"));
  const calls = [...text.matchAll(/^cmdstat_eval(?:sha)?:calls=(\d+)/gm)];
  return calls.reduce((sum, [, count]) => sum + Number(count), 0);
}

import { isCluster } from "../../redis/link.ts";
import { createWriter } from "../../redis/writer.ts";
import { kernelOf } from "../kernel.ts";
import { RedisAccount, type RedisKernelOptions } from "./account.ts";
import { createWakeUps } from "./wake-ups.ts";

/** How often the members of expired records are removed from indexes. */
const sweepMs = 60_000;

/**
 * A store in Redis, shared by all processes that use the same Redis and prefix. Redis has stored what
 * it acknowledges; whether that outlives Redis depends on its settings (see `describeDurability`).
 * While Redis is out of reach, watches wait and then go on without a gap; all other calls throw
 * UNAVAILABLE.
 */
export function createRedisKernel(options: RedisKernelOptions) {
  const { redis, minReplicas = 0, ofRecords } = options;
  const { indexes, keepMs } = ofRecords;
  const write = createWriter(redis, minReplicas);
  const mayBeReplaced = redis.sentinels !== undefined || isCluster(redis.client);
  const confirm = mayBeReplaced && minReplicas !== "all" ? createWriter(redis, "all") : write;
  const shared = { write, confirm, wakeUps: createWakeUps(redis) };
  const open = (name: string) => new RedisAccount(name, options, shared);
  return kernelOf(true, open, Math.min(sweepMs, keepMs), async (all) => {
    const until = (account: RedisAccount) => (account.nowMs() - keepMs) * 1_000;
    for (const account of all) await account.dropExpired(indexes, until(account)).catch(() => {});
  });
}

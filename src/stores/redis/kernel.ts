import type { RedisConnector } from "../../redis/connect.ts";
import { accountKeys } from "../../redis/keys.ts";
import { createWriter, type MinReplicas, type Writer } from "../../redis/writer.ts";
import { kernelOf } from "../kernel.ts";
import { RedisAccount } from "./account.ts";
import type { FeedState } from "./feed.ts";
import { createWakeUps } from "./wake-ups.ts";

/** How often the members of expired records are removed from indexes. */
const sweepMs = 60_000;

export interface RedisKernelOptions {
  /** Stays open when the store is closed. */
  readonly redis: RedisConnector;
  /** Prefix of all keys. */
  readonly prefix: string;
  /** How long events are kept, in milliseconds. */
  readonly retentionMs: number;
  /**
   * Indexes whose members are keys of records, and whose scores are instants. Redis does not remove
   * such a member when its record expires, so this process does, from time to time.
   */
  readonly ofRecords: {
    readonly indexes: readonly string[];
    /** A record is kept at least so long after its instant, in milliseconds. */
    readonly keepMs: number;
  };
  /** Replicas of Redis that must hold a commit before it is acknowledged. Default: 0. */
  readonly minReplicas?: MinReplicas;
  /** Default: one that waits for `minReplicas`. */
  readonly writer?: Writer;
  /** The live delivery of an account's events changed its state. */
  readonly onFeed?: (details: {
    readonly account: string;
    readonly state: FeedState;
    readonly error?: unknown;
  }) => void;
}

/**
 * A store in Redis, shared by all processes that use the same Redis and prefix. Redis has stored what
 * it acknowledges; whether that outlives Redis depends on its settings (see `describeDurability`).
 * While Redis is out of reach, watches wait and then go on without a gap; all other calls throw
 * UNAVAILABLE.
 */
export function createRedisKernel(options: RedisKernelOptions) {
  const { redis, prefix, retentionMs, minReplicas = 0, onFeed } = options;
  const { indexes, keepMs } = options.ofRecords;
  const { writer = createWriter(redis, minReplicas) } = options;
  const wakeUps = createWakeUps(redis);
  const open = (account: string) =>
    new RedisAccount({
      ...{ redis, writer, wakeUps, retentionMs, keys: accountKeys(prefix, account) },
      awaitsReplicas: minReplicas !== 0,
      onState: (state, error) => onFeed?.({ account, state, error }),
    });
  return kernelOf(true, open, Math.min(sweepMs, keepMs), async (all) => {
    const until = (account: RedisAccount) => (account.nowMs() - keepMs) * 1_000;
    for (const account of all) await account.dropExpired(indexes, until(account)).catch(() => {});
  });
}

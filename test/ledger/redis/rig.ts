import { after } from "node:test";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { type FallbackOptions, LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import { isAway, storeAway } from "../../../src/redis/ask.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import type { RedisKernelOptions } from "../../../src/stores/redis/account.ts";
import { connected } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { createRedisLedger, type RedisLedgerOptions, redisKernelOf } from "../create.ts";

const keyring = await deriveKeyring("shop", [new Secret("password")]);
const retentionMs = 7 * 86_400_000;

export type Replica = Awaited<ReturnType<typeof replica>>;

/** Opens a log with its own connections, as a separate process has it; waits until Redis answers. */
export async function replica(url: string, options: Partial<RedisLedgerOptions> = {}) {
  const redis = await connected(url);
  const log = createRedisLedger({
    ...{ redis, prefix: "test", retentionMs, keyringOf: () => keyring },
    ...options,
  });
  const opened = {
    log,
    async close() {
      open.delete(opened);
      await log.close();
      await redis.close();
    },
  };
  open.add(opened);
  return opened;
}

const open = new Set<{ close(): Promise<void> }>();

after(() => Promise.all([...open].map((one) => one.close())));

/** Reads all events of the account `shop` in the background. */
export async function reader(log: Ledger, after = "latest") {
  const ends = new AbortController();
  const events = await log.read("shop", undefined, after, { signal: ends.signal });
  const seen: Event[] = [];
  let over = false;
  const ended = (async () => {
    try {
      for await (const event of events) seen.push(event);
      return undefined;
    } catch (error) {
      return error;
    } finally {
      over = true;
    }
  })();
  return {
    seen,
    /** Resolves when the read has ended: to its error, or to undefined without one. */
    ended: ended as Promise<unknown>,
    /** Waits until `count` events were seen; rejects in the end, or if the read ends before. */
    async sees(count: number): Promise<void> {
      await until(() => over || seen.length >= count, `${count} events are seen`);
      if (seen.length < count) throw new Error(`the read ended after ${seen.length} of ${count}`);
    },
    async stop(): Promise<void> {
      ends.abort();
      await ended;
    },
  };
}

export type RedisCallsOptions = Omit<RedisKernelOptions, "retentionMs" | "ofRecords"> &
  Pick<FallbackOptions, "firstLookMs" | "giveUpMs" | "onStateChange" | "report"> & {
    readonly answerMs?: number;
    /** No call that moves money goes on without Redis. */
    readonly required?: boolean;
  };

/** The ledger of a replica in Redis, as a gateway opens it. */
export function createRedisCalls(options: RedisCallsOptions): LedgerWithFallback {
  const { redis, answerMs = 500, required = false } = options;
  return new LedgerWithFallback({
    ...options,
    ...{ kernel: redisKernelOf({ ...options, retentionMs }), keyringOf: () => keyring },
    ...{ retentionMs, answerMs },
    isAway: (error, account) =>
      !required && isAway(error, redis.client, accountKeys(options.prefix, account).log),
    unavailable: (error) => storeAway(error, redis.client),
  });
}

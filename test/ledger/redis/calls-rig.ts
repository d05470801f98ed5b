import { type FallbackOptions, LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import { isAway, storeAway } from "../../../src/redis/ask.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import type { RedisKernelOptions } from "../../../src/stores/redis/account.ts";
import { redisKernelOf } from "../create.ts";

const keyring = await deriveKeyring("default", [new Secret("password")]);

export type RedisCallsOptions = Omit<RedisKernelOptions, "retentionMs" | "ofRecords"> &
  Pick<FallbackOptions, "firstLookMs" | "giveUpMs" | "onStateChange" | "report"> & {
    readonly answerMs?: number;
    /** No call that moves money goes on without Redis. */
    readonly required?: boolean;
  };

/** The ledger of a replica in Redis, as a gateway opens it. */
export function createRedisCalls(options: RedisCallsOptions): LedgerWithFallback {
  const { redis, answerMs = 500, required = false } = options;
  const retentionMs = 7 * 86_400_000;
  return new LedgerWithFallback({
    ...options,
    ...{ kernel: redisKernelOf({ ...options, retentionMs }), keyringOf: () => keyring },
    ...{ retentionMs, answerMs },
    isAway: (error, account) =>
      !required && isAway(error, redis.client, accountKeys(options.prefix, account).log),
    unavailable: (error) => storeAway(error, redis.client),
  });
}

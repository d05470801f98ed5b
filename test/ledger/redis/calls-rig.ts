import { CallsWithFallback, type FallbackOptions } from "../../../src/ledger/fallback.ts";
import { isAway, storeAway } from "../../../src/redis/ask.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import type { RedisKernelOptions } from "../../../src/stores/redis/kernel.ts";
import { createRedisLedger } from "../create.ts";

const keyring = await deriveKeyring("default", [new Secret("password")]);

export type RedisCallsOptions = Omit<RedisKernelOptions, "retentionMs"> &
  Pick<FallbackOptions, "firstLookMs" | "giveUpMs" | "onStateChange"> & {
    readonly answerMs?: number;
    /** No call that moves money goes on without Redis. */
    readonly required?: boolean;
  };

/** The calls of a replica whose ledger is in Redis, as a gateway opens them. */
export function createRedisCalls(options: RedisCallsOptions): CallsWithFallback {
  const { redis, answerMs = 500, required = false } = options;
  const retentionMs = 7 * 86_400_000;
  const ledger = createRedisLedger({ ...options, retentionMs, keyringOf: () => keyring });
  const calls = new CallsWithFallback({
    ...options,
    ...{ ledger, retentionMs, answerMs },
    isAway: (error, account) =>
      !required && isAway(error, redis.client, accountKeys(options.prefix, account).log),
    unavailable: (error) => storeAway(error, redis.client),
  });
  const close = calls.close.bind(calls);
  calls.close = async () => {
    await close();
    await ledger.close();
  };
  return calls;
}

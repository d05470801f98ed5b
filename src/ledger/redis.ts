import { createWriter } from "../redis/writer.ts";
import type { Keyring } from "../secrets/keyring.ts";
import { createRedisKernel, type RedisKernelOptions } from "../stores/redis/kernel.ts";
import { keptFor } from "./entries.ts";
import { Ledger, type LedgerOptions } from "./ledger.ts";
import { listIndexes } from "./listing.ts";
import { sealedCodec } from "./stored-event.ts";

export interface RedisLedgerOptions
  extends RedisKernelOptions,
    Partial<Pick<LedgerOptions, "firstLookMs" | "giveUpMs" | "report" | "lettersBound">> {
  /** Encrypts the secrets of an account's events and dead letters. */
  readonly keyringOf: (account: string) => Pick<Keyring, "events" | "deadLetters">;
}

/** The ledger in Redis, shared by all processes that use the same Redis and prefix. */
export function createRedisLedger(options: RedisLedgerOptions): Ledger {
  const { redis, minReplicas = 0, keyringOf, report } = options;
  const { writer = createWriter({ redis, minReplicas }) } = options;
  return new Ledger({
    ...{ firstLookMs: 60_000, giveUpMs: 86_400_000 },
    ...options,
    kernel: createRedisKernel({
      ...options,
      writer,
      ofRecords: { indexes: listIndexes, keepMs: keptFor(options) },
    }),
    lettersSealOf: (account) => keyringOf(account).deadLetters,
    codecOf: (account) =>
      sealedCodec(keyringOf(account).events, () => report?.("locked", { account, what: "event" })),
  });
}

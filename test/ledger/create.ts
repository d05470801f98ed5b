/** Ledgers as a gateway opens them, with times that most tests do not care about. */
import { Ledger, type LedgerOptions } from "../../src/ledger/ledger.ts";
import { expiringIndexes } from "../../src/ledger/listing.ts";
import type { Kernel } from "../../src/stores/kernel.ts";
import { createMemoryKernel, type MemoryKernelOptions } from "../../src/stores/memory/kernel.ts";
import type { RedisKernelOptions } from "../../src/stores/redis/account.ts";
import { createRedisKernel } from "../../src/stores/redis/kernel.ts";
import { createSqliteKernel, type SqliteKernelOptions } from "../../src/stores/sqlite/kernel.ts";

type Given = Partial<Pick<LedgerOptions, "firstLookMs" | "giveUpMs" | "report">>;
type Sealed = Given & { readonly keyringOf: NonNullable<LedgerOptions["keyringOf"]> };

export type MemoryLedgerOptions = MemoryKernelOptions & Given;
export type SqliteLedgerOptions = SqliteKernelOptions & Sealed;
type RedisOptions = Omit<RedisKernelOptions, "ofRecords">;
export type RedisLedgerOptions = RedisOptions & Sealed;

const ages = { firstLookMs: 60_000, giveUpMs: 86_400_000 };

export function createMemoryLedger(options: MemoryLedgerOptions): Ledger {
  return createMemoryReplicas(options)[0];
}

/** The ledgers of two replicas with one store. */
export function createMemoryReplicas(options: MemoryLedgerOptions): [one: Ledger, other: Ledger] {
  const kernel = createMemoryKernel(options);
  const replica = () => new Ledger({ ...ages, ...options, kernel, keyringOf: undefined });
  return [replica(), replica()];
}

export function createSqliteLedger(options: SqliteLedgerOptions): Ledger {
  return new Ledger({ ...ages, ...options, kernel: createSqliteKernel(options) });
}

export function createRedisLedger(options: RedisLedgerOptions): Ledger {
  return new Ledger({ ...ages, ...options, kernel: redisKernelOf(options) });
}

export function redisKernelOf(options: RedisOptions): Kernel {
  return createRedisKernel({ ...options, ofRecords: expiringIndexes(options) });
}

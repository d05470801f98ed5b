import type { Keyring } from "../secrets/keyring.ts";
import { createSqliteKernel, type SqliteKernelOptions } from "../stores/sqlite/kernel.ts";
import { Ledger, type LedgerOptions } from "./ledger.ts";
import { sealedCodec } from "./stored-event.ts";

export interface SqliteLedgerOptions
  extends SqliteKernelOptions,
    Partial<Pick<LedgerOptions, "firstLookMs" | "giveUpMs" | "report" | "lettersBound">> {
  /** Encrypts the secrets of an account's events and dead letters. */
  readonly keyringOf: (account: string) => Pick<Keyring, "events" | "deadLetters">;
}

/** The ledger in the embedded store of this process. */
export function createSqliteLedger(options: SqliteLedgerOptions): Ledger {
  const { keyringOf, report } = options;
  return new Ledger({
    ...{ firstLookMs: 60_000, giveUpMs: 86_400_000 },
    ...options,
    kernel: createSqliteKernel(options),
    lettersSealOf: (account) => keyringOf(account).deadLetters,
    codecOf: (account) =>
      sealedCodec(keyringOf(account).events, () => report?.("locked", { account, what: "event" })),
  });
}

import type { Keyring } from "../secrets/keyring.ts";
import { SqliteDeadLetters, type SqliteDeadLettersOptions } from "../stores/sqlite/dead-letters.ts";
import { createSqliteKernel, type SqliteKernelOptions } from "../stores/sqlite/kernel.ts";
import { Ledger, type LedgerOptions } from "./ledger.ts";
import { sealedCodec } from "./stored-event.ts";

export interface SqliteLedgerOptions
  extends SqliteKernelOptions,
    Pick<SqliteDeadLettersOptions, "letters">,
    Partial<Pick<LedgerOptions, "firstLookMs" | "giveUpMs" | "report">> {
  /** Encrypts the secrets of an account's events and dead letters. */
  readonly keyringOf: (account: string) => Pick<Keyring, "events" | "deadLetters">;
}

/** The ledger in the embedded store of this process. */
export function createSqliteLedger(options: SqliteLedgerOptions): Ledger {
  const { thread, keyringOf, letters, report } = options;
  return new Ledger({
    ...{ firstLookMs: 60_000, giveUpMs: 86_400_000 },
    ...options,
    kernel: createSqliteKernel(options),
    letters: new SqliteDeadLetters({
      ...{ thread, letters },
      sealOf: (account) => keyringOf(account).deadLetters,
      onLocked: (account) => report?.("locked", { account, what: "dead_letter" }),
    }),
    codecOf: (account) =>
      sealedCodec(keyringOf(account).events, () => report?.("locked", { account, what: "event" })),
  });
}

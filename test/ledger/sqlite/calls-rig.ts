import { CallsWithFallback } from "../../../src/ledger/fallback.ts";
import type { Ages } from "../../../src/ledger/intents.ts";
import { createSqliteLedger, type SqliteLedgerOptions } from "../../../src/ledger/sqlite.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { openStoreThread, type StoreThread } from "../../../src/stores/sqlite/store-thread.ts";

const keyring = await deriveKeyring("default", [new Secret("password")]);

export type SqliteCallsOptions = Partial<
  Ages & Pick<SqliteLedgerOptions, "now" | "keyringOf" | "retentionMs">
>;

/** The calls of a process whose ledger this thread has, as a gateway opens them. */
export function createSqliteCalls(thread: StoreThread, options: SqliteCallsOptions = {}) {
  const given = {
    ...{ firstLookMs: 60_000, giveUpMs: 3_600_000, retentionMs: 7 * 86_400_000 },
    ...{ keyringOf: () => keyring, ...options },
  };
  const ledger = createSqliteLedger({ ...given, thread });
  const store = new CallsWithFallback({
    ...{ ...given, ledger, isAway: () => true, readsGoOn: true, answerMs: 10_000 },
  });
  return { store, ledger };
}

/** A store in this directory, as a process opens it. */
export async function openIntents(
  directory: string,
  { accounts = ["default"], ...options }: SqliteCallsOptions & { accounts?: string[] } = {},
) {
  const thread = await openStoreThread({ directory });
  const { store, ledger } = createSqliteCalls(thread, options);
  for (const account of accounts) await ledger.endLeases(account);
  return {
    store,
    ledger,
    thread,
    async close() {
      await store.close();
      await ledger.close();
      await thread.close();
    },
  };
}

import { LedgerWithFallback } from "../../../src/ledger/fallback.ts";
import type { Ages } from "../../../src/ledger/intents.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { createSqliteKernel } from "../../../src/stores/sqlite/kernel.ts";
import {
  openStoreThread,
  type StoreThread,
  type StoreThreadOptions,
} from "../../../src/stores/sqlite/store-thread.ts";
import { createSqliteLedger, type SqliteLedgerOptions } from "../create.ts";

export const day = 86_400_000;
const keyring = await deriveKeyring("shop", [new Secret("password")]);

/**
 * The ledger of a process whose store this thread has, as a gateway opens it; and one that knows what
 * is stored alone.
 */
export function createSqliteCalls(
  thread: Pick<StoreThread, "run">,
  options: Partial<SqliteLedgerOptions & Ages> = {},
) {
  const given = {
    ...{ firstLookMs: 60_000, giveUpMs: 3_600_000, retentionMs: 7 * day },
    ...{ keyringOf: () => keyring, ...options },
  };
  const kernel = createSqliteKernel({ ...given, thread });
  const store = new LedgerWithFallback({
    ...{ ...given, kernel, isAway: () => true, readsGoOn: true, answerMs: 10_000 },
  });
  return { store, stored: createSqliteLedger({ ...given, thread }) };
}

/** The ledger in this directory, as a process opens it. */
export async function openLog(
  directory: string,
  options: Partial<SqliteLedgerOptions & Ages & StoreThreadOptions> = {},
) {
  const thread = await openStoreThread({ directory, ...options });
  const { store } = createSqliteCalls(thread, options);
  return {
    ...{ store, log: store, thread },
    async close() {
      await store.close();
      await thread.close();
    },
  };
}

/** The same, once the calls of the last process that had it are known to be lost. */
export async function openIntents(
  directory: string,
  options?: Parameters<typeof openLog>[1],
  account = "default",
) {
  const opened = await openLog(directory, options);
  await opened.store.endLeases(account);
  return opened;
}

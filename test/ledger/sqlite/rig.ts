import { after } from "node:test";
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
import { type EventLogHarness, lettersBound } from "../../contracts/event-log.ts";
import { freshDirectory } from "../../stores/sqlite/directories.ts";
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
  {
    accounts = ["default"],
    ...options
  }: Parameters<typeof openLog>[1] & { accounts?: string[] } = {},
) {
  const opened = await openLog(directory, options);
  for (const account of accounts) await opened.store.endLeases(account);
  return opened;
}

let shared: ReturnType<typeof openShared> | undefined;
let harnesses = 0;

/**
 * For the contract suites: a new ledger on one shared store thread, since each thread takes a tenth
 * of a second to start. A prefix to the account names keeps the ledgers apart.
 */
export async function sharedLedger(
  options: Parameters<typeof createSqliteCalls>[1],
): Promise<LedgerWithFallback> {
  shared ??= openShared();
  const { thread } = await shared;
  return withAccounts(createSqliteCalls(thread, options).store, `${++harnesses}-`);
}

export async function sqliteHarness(): Promise<EventLogHarness> {
  let ahead = 0;
  const log = await sharedLedger({ lettersBound, now: () => Date.now() + ahead });
  return {
    ...{ log, peer: log },
    async expire() {
      ahead += 7 * day + 1_000;
    },
    async stop() {},
  };
}

async function openShared() {
  const directory = freshDirectory();
  return { thread: await openStoreThread({ directory: directory.path }), directory };
}

after(async () => {
  const opened = await shared;
  await opened?.thread.close();
  opened?.directory.remove();
});

/** The log with `prefix` added to the account name, the first argument of its methods. */
function withAccounts<T extends object>(log: T, prefix: string): T {
  return new Proxy(log, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name, target);
      if (name === "letters") return withAccounts(value as object, prefix);
      if (typeof value !== "function") return value;
      return (...[account, ...rest]: readonly unknown[]) =>
        value.apply(target, typeof account === "string" ? [prefix + account, ...rest] : []);
    },
  });
}

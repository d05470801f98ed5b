import { after } from "node:test";
import { createSqliteLedger, type SqliteLedgerOptions } from "../../../src/ledger/sqlite.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import {
  openStoreThread,
  type StoreThreadOptions,
} from "../../../src/stores/sqlite/store-thread.ts";
import type { EventLogHarness } from "../../contracts/event-log/rig.ts";
import { freshDirectory } from "../../stores/sqlite/directories.ts";

export const day = 86_400_000;
const keyring = await deriveKeyring("shop", [new Secret("password")]);

/** A log in this directory, as a process opens it. */
export async function openLog(
  directory: string,
  options: Partial<SqliteLedgerOptions & StoreThreadOptions> = {},
) {
  const thread = await openStoreThread({ directory, ...options });
  const log = createSqliteLedger({
    thread,
    retentionMs: 7 * day,
    keyringOf: () => keyring,
    ...options,
  });
  return {
    log,
    thread,
    async close() {
      await log.close();
      await thread.close();
    },
  };
}

let shared: ReturnType<typeof openShared> | undefined;
let harnesses = 0;

/**
 * For the contract suites: a new log on one shared store thread, since each thread takes a tenth of
 * a second to start. A prefix to the account names keeps the logs apart.
 */
export async function sqliteHarness(): Promise<EventLogHarness> {
  shared ??= openShared();
  const { thread } = await shared;
  const prefix = `${++harnesses}-`;
  let ahead = 0;
  const log = createSqliteLedger({
    thread,
    retentionMs: 7 * day,
    keyringOf: () => keyring,
    now: () => Date.now() + ahead,
  });
  const handle = withAccounts(log, prefix);
  return {
    log: handle,
    peer: handle,
    async expire() {
      ahead += 7 * day + 1_000;
    },
    async stop() {},
  };
}

async function openShared() {
  const directory = freshDirectory();
  const thread = await openStoreThread({
    directory: directory.path,
  });
  return { thread, directory };
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

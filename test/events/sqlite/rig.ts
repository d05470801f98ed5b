import {
  createSqliteLog,
  eventsRoom,
  type SqliteLogOptions,
} from "../../../src/events/sqlite/log.ts";
import { deriveKeyring } from "../../../src/secrets/keyring.ts";
import { Secret } from "../../../src/secrets/secret.ts";
import { openStoreThread, type StoreThreadOptions } from "../../../src/sqlite/store-thread.ts";
import type { EventLogHarness } from "../../contracts/event-log.ts";
import { freshDirectory } from "../../sqlite/directories.ts";

export const day = 86_400_000;
const keyring = await deriveKeyring("shop", [new Secret("password")]);

/** A log as a process has it, on the directory. */
export async function openLog(
  directory: string,
  options: Partial<SqliteLogOptions & StoreThreadOptions> = {},
) {
  const thread = await openStoreThread({ directory, rooms: { events: eventsRoom }, ...options });
  const log = createSqliteLog({
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

/** What the contract suites run on. */
export async function sqliteHarness(): Promise<EventLogHarness> {
  const directory = freshDirectory();
  let ahead = 0;
  const { log, thread } = await openLog(directory.path, { now: () => Date.now() + ahead });
  return {
    log,
    peer: log,
    async expire() {
      ahead += 7 * day + 1_000;
    },
    async stop() {
      await thread.close();
      directory.remove();
    },
  };
}

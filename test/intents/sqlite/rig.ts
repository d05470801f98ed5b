import { createSqliteIntents, intentsRoom } from "../../../src/intents/sqlite/store.ts";
import type { IntentStoreOptions } from "../../../src/intents/store.ts";
import { openStoreThread } from "../../../src/sqlite/store-thread.ts";

/** A store in this directory, as a process opens it. */
export async function openIntents(
  directory: string,
  options: Partial<IntentStoreOptions & { now: () => number }> = {},
) {
  const thread = await openStoreThread({ directory, rooms: { intents: intentsRoom } });
  const store = await createSqliteIntents({
    ...{ thread, firstLookMs: 60_000, giveUpMs: 3_600_000 },
    ...options,
  });
  return {
    store,
    thread,
    async close() {
      await store.close();
      await thread.close();
    },
  };
}

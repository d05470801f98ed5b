import type { DatabaseSync } from "node:sqlite";
import { dueIndex, givenUpIndex } from "../ledger/calls.ts";
import type { ClientTlsFiles } from "../net/client-tls.ts";
import { troubleOf } from "../redis/ask.ts";
import { connectRedis, type RedisConnector } from "../redis/connect.ts";
import { readyWithin } from "../redis/deadline.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import type { Secret } from "../secrets/secret.ts";
import { hasAccount, importAccount } from "../stores/redis/import.ts";
import { openDirectory } from "../stores/sqlite/directory.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";
import { storedAccounts } from "../stores/sqlite/export.ts";
import { addNote } from "../stores/sqlite/notes.ts";

export interface MoveOptions {
  readonly directory: string;
  readonly redis: {
    readonly url: Secret;
    readonly prefix: string;
    readonly tls?: ClientTlsFiles | undefined;
  };
  /** EVENT_RETENTION, in milliseconds. */
  readonly retentionMs: number;
}

/** Redis did not take the state over, or not all of it; the directory is unchanged. */
export class MoveRefused extends Error {
  override readonly name = "MoveRefused";
  /** Whether Redis did not answer. */
  readonly away: boolean;

  constructor(message: string, away = false) {
    super(message);
    this.away = away;
  }
}

/**
 * Moves the state of a directory to Redis: events under the cursors that clients hold, dead
 * letters, open calls, Idempotency-Keys. No gateway may use the directory meanwhile. Nothing in it
 * is deleted, but it is marked as moved, so that no gateway continues in it beside those on Redis.
 * @returns what was moved, and as `warning` what Redis may lose with its present settings
 * @throws StoreRefused, MoveRefused
 */
export async function moveToRedis(options: MoveOptions) {
  const { url, tls } = options.redis;
  const { database, close } = openDirectory(options.directory);
  let trouble: string | undefined;
  const onError = (error: Error) => {
    // Later ones may only follow from it.
    trouble ??= troubleOf(error);
  };
  const connection = connectRedis(url, onError, { tls });
  try {
    await readyWithin(connectMs, connection.client);
    if (connection.client.status !== "ready") {
      const reason = trouble ?? `no answer within ${connectMs / 1_000} s`;
      throw new MoveRefused(`Redis cannot be reached: ${reason}`, true);
    }
    return await move(database, connection, options);
  } catch (error) {
    if (error instanceof MoveRefused || error instanceof StoreRefused) throw error;
    throw new MoveRefused(`the move to Redis is incomplete: ${troubleOf(error)}`);
  } finally {
    close();
    await connection.close();
  }
}

const connectMs = 3_000;

async function move(
  database: DatabaseSync,
  connection: RedisConnector,
  { redis: { prefix }, retentionMs }: MoveOptions,
) {
  const { client } = connection;
  const nowMs = Date.now();
  const accounts = storedAccounts(database);
  for (const { name } of accounts) {
    if (!(await hasAccount({ client, keys: accountKeys(prefix, name) }))) continue;
    throw new MoveRefused(
      `Redis has events of the account ${name} under the prefix ${prefix} already: use another REDIS_PREFIX, or an empty Redis`,
    );
  }
  const moved = [];
  for (const account of accounts) {
    const keys = accountKeys(prefix, account.name);
    const { events, records, members } = await importAccount(account, {
      ...{ client, keys, retentionMs, nowMs },
    });
    moved.push({
      ...{ name: account.name, events, letters: records.letter ?? 0, keyUses: records.key ?? 0 },
      openCalls: (members[dueIndex] ?? 0) + (members[givenUpIndex] ?? 0),
    });
  }
  const warning = await describeDurability(connection).catch(() => undefined);
  addNote(database, "moved");
  return {
    accounts: moved,
    calls: moved.reduce((sum, { openCalls }) => sum + openCalls, 0),
    keys: moved.reduce((sum, { keyUses }) => sum + keyUses, 0),
    warning,
  };
}

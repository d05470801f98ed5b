import type { Command } from "commander";
import { redisTlsOf, redisVariables } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { readVariables } from "../config/environment.ts";
import { dueIndex, givenUpIndex } from "../ledger/calls.ts";
import { troubleOf } from "../redis/ask.ts";
import { describeDurability } from "../redis/durability.ts";
import { accountKeys } from "../redis/keys.ts";
import { Secret } from "../secrets/secret.ts";
import { accountsIn, hasAccount, importAccount } from "../stores/redis/import.ts";
import { openDirectory } from "../stores/sqlite/directory.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";
import { markMoved } from "../stores/sqlite/schema.ts";
import { noDirectory } from "./backup.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import { reachRedis } from "./reach-redis.ts";
import { note, print } from "./terminal.ts";

const help = `
Stop the gateway first: while it runs, the directory is its own. Events go under the same cursors, so
watchers go on where they were; dead letters, open calls, locks and Idempotency-Keys come along. Then
start gateways with REDIS_URL in place of DATA_DIR, and the same passwords: what
is encrypted stays encrypted.

Redis must hold no events of these accounts yet. If it breaks off, run it again. The directory keeps
all that it has, and is marked, so that no gateway starts on it any more.

REDIS_PREFIX and EVENT_RETENTION are read as \`serve\` reads them. A REDIS_URL with a password is
better given as REDIS_URL or REDIS_URL_FILE, which no list of processes shows.

Examples:
  $ DATA_DIR=/var/lib/payments-gateway payments-gateway migrate --to redis://redis.example.com:6379
  $ REDIS_URL_FILE=/run/secrets/redis-url DATA_DIR=/var/lib/gateway payments-gateway migrate`;

export function configure(command: Command, env: Environment): void {
  command
    .option("--to <url>", "the Redis, as in REDIS_URL (default: REDIS_URL)")
    .addHelpText("after", help)
    .action(({ to }: { readonly to?: string }) =>
      migrate(to === undefined ? env : { ...env, REDIS_URL: to, REDIS_URL_FILE: undefined }),
    );
}

/**
 * Moves the state of a directory to Redis: events under the cursors that clients hold, dead
 * letters, open calls, Idempotency-Keys. No gateway may use the directory meanwhile. Nothing in it
 * is deleted, but it is marked as moved, so that no gateway continues in it beside those on Redis.
 * @throws CommandError, StoreRefused
 */
async function migrate(env: Environment): Promise<void> {
  const names = [...redisVariables, "DATA_DIR", "REDIS_PREFIX", "EVENT_RETENTION"] as const;
  const values = readVariables(env, names);
  const { DATA_DIR: directory, REDIS_URL: url, REDIS_PREFIX: prefix } = values;
  if (directory === undefined) throw noDirectory();
  if (url === undefined) {
    throw new CommandError("no Redis is named: give --to, or set REDIS_URL", exitCodes.config);
  }
  const { database, close } = openDirectory(directory);
  const { connection, trouble } = await reachRedis({
    url: new Secret(url),
    tls: redisTlsOf(values),
  });
  try {
    if (trouble !== undefined) {
      throw new CommandError(`Redis cannot be reached: ${trouble}`, exitCodes.unavailable);
    }
    const { client } = connection;
    const nowMs = Date.now();
    const accounts = accountsIn(database);
    for (const { name } of accounts) {
      if (!(await hasAccount({ client, keys: accountKeys(prefix, name) }))) continue;
      throw new CommandError(
        `Redis has events of the account ${name} under the prefix ${prefix} already: use another REDIS_PREFIX, or an empty Redis`,
      );
    }
    let openCalls = 0;
    let keyUses = 0;
    for (const account of accounts) {
      const { events, records, members } = await importAccount(database, account, {
        ...{ client, keys: accountKeys(prefix, account.name), nowMs },
        retentionMs: values.EVENT_RETENTION,
      });
      print(`${account.name}: ${events} events, ${records.letter ?? 0} dead letters`);
      openCalls += (members[dueIndex] ?? 0) + (members[givenUpIndex] ?? 0);
      keyUses += records.key ?? 0;
    }
    const warning = await describeDurability(connection).catch(() => undefined);
    markMoved(database);
    print(`${openCalls} open calls, ${keyUses} uses of Idempotency-Keys`);
    if (warning !== undefined) note(`Redis: ${warning}`);
  } catch (error) {
    if (error instanceof CommandError || error instanceof StoreRefused) throw error;
    throw new CommandError(`the move to Redis is incomplete: ${troubleOf(error)}`);
  } finally {
    close();
    await connection.close();
  }
}

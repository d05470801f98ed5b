import type { Command } from "commander";
import { redisTlsOf, redisVariables } from "../config/config.ts";
import { readVariables } from "../config/environment.ts";
import { Secret } from "../secrets/secret.ts";
import { CommandError, exitCodes } from "./command-error.ts";
import { dataDirectoryOf } from "./data-directory.ts";
import type { Environment } from "./secrets.ts";
import { note, print } from "./terminal.ts";

const help = `
Stop the gateway first: while it runs, the directory is its own. Events go under the same cursors, so
watchers go on where they were; dead letters, open calls, locks and Idempotency-Keys come along. Then
start gateways with REDIS_URL in place of DATA_DIR, and the same passwords: what
is encrypted stays encrypted.

Redis must hold no events of these accounts yet. If it breaks off, run it again. The directory keeps
all that it has, and is marked, so that no gateway starts on it any more.

REDIS_PREFIX, EVENT_RETENTION and RECONCILE_GIVE_UP are read as \`serve\` reads them. A REDIS_URL with a
password is better given as REDIS_URL or REDIS_URL_FILE, which no list of processes shows.

Examples:
  $ DATA_DIR=/var/lib/payments-gateway payments-gateway migrate --to redis://redis.example.com:6379
  $ REDIS_URL_FILE=/run/secrets/redis-url DATA_DIR=/var/lib/gateway payments-gateway migrate`;

export function configure(command: Command, env: Environment): void {
  command
    .description("Moves the state in DATA_DIR to Redis, for several gateways.")
    .option("--to <url>", "the Redis, as in REDIS_URL (default: REDIS_URL)")
    .addHelpText("after", help)
    .action(({ to }: { readonly to?: string }) => migrate(to, env));
}

async function migrate(to: string | undefined, env: Environment): Promise<void> {
  const directory = dataDirectoryOf(env);
  const values = readVariables(
    to === undefined ? env : { ...env, REDIS_URL: to, REDIS_URL_FILE: undefined },
    [...redisVariables, "REDIS_PREFIX", "EVENT_RETENTION"],
  );
  const url = values.REDIS_URL;
  if (url === undefined) {
    throw new CommandError("no Redis is named: give --to, or set REDIS_URL", exitCodes.config);
  }
  const { moveToRedis, MoveRefused } = await import("../app/move.ts");
  try {
    const { accounts, calls, keys, warning } = await moveToRedis({
      directory,
      redis: { url: new Secret(url), prefix: values.REDIS_PREFIX, tls: redisTlsOf(values) },
      retentionMs: values.EVENT_RETENTION,
    });
    for (const { name, events, letters } of accounts) {
      print(`${name}: ${events} events, ${letters} dead letters`);
    }
    print(`${calls} open calls, ${keys} uses of Idempotency-Keys`);
    if (warning !== undefined) note(`Redis: ${warning}`);
  } catch (error) {
    if (!(error instanceof MoveRefused)) throw error;
    throw new CommandError(error.message, error.away ? exitCodes.unavailable : exitCodes.failed);
  }
}

import type { Command } from "commander";
import { checkFiles } from "../app/check-files.ts";
import { remoteKeySet } from "../auth/key-set.ts";
import { type Config, readConfig } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { ConfigError } from "../errors.ts";
import { StoreRefused } from "../stores/sqlite/errors.ts";
import { CommandError, exitCodes, interruption } from "./command-error.ts";
import { type Finding, findings } from "./finding.ts";
import { faultOf, withoutUserinfo } from "./reach.ts";
import { paint, print, printJson } from "./terminal.ts";

const help = `
Reads the same variables as \`serve\`, by the same code, and the files that they name. Then it goes
out: each merchant account looks up a payout that does not exist (a read that moves nothing, shows
whether the credentials are taken, and costs one request of the account's budget, up to three if no
answer comes); Redis is asked for its version, persistence, eviction and replicas, and runs a script
on keys that are removed again; the database in DATA_DIR is read from end to end; PUBLIC_URL is called;
the key set of JWTs is fetched. --offline only validates, and reaches nothing.

  ✓ fine   ! the gateway would serve, and something is not as it should be   ✗ wrong   - not set

Exit codes: 0 nothing is wrong, 1 something is, 78 the configuration itself is wrong.

Examples:
  $ payments-gateway check
  $ payments-gateway check --offline && payments-gateway serve
  $ payments-gateway check --json | jq -r '.checks[] | select(.verdict == "failed").advice'`;

interface Options {
  readonly offline?: boolean;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  command
    .option("--offline", "only validate: reach nothing")
    .option("--json", "print {ok, checks: [{check, verdict, message, advice}]}")
    .addHelpText("after", help)
    .action((options: Options) => check(options, env));
}

async function check({ offline = false, json = false }: Options, env: Environment): Promise<void> {
  const signal = interruption();
  const found: Finding[] = [];
  const report = (...more: Finding[]) => {
    found.push(...more);
    if (!json) for (const finding of more) print(lineOf(finding));
  };
  const config = await configOf(env, report);
  if (config && !offline) await goOut(config, signal, report);
  signal.throwIfAborted();
  const failed = found.some(({ verdict }) => verdict === "failed");
  if (json) printJson({ ok: !failed, checks: found });
  if (failed) throw new CommandError("", config ? exitCodes.failed : exitCodes.config);
}

type Report = (...more: Finding[]) => void;

async function configOf(env: Environment, report: Report): Promise<Config | undefined> {
  const { ok, warning, failed } = findings("configuration");
  report(...unknownVariables(env).map((unknown) => warning(unknown)));
  try {
    const config = readConfig(env);
    await checkFiles(config);
    const accounts = [...config.accounts.keys()].join(", ");
    const state = config.redis ? "Redis" : config.dataDirectory ? "DATA_DIR" : "memory";
    report(
      ok(`${config.sandboxAddress ? "sandbox, " : ""}accounts: ${accounts}; state in ${state}`),
    );
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    report(...error.mistakes.map((mistake) => failed(mistake)));
    return undefined;
  }
}

/** Checks the network in order of dependence: upstream, store, then the rest. */
async function goOut(config: Config, signal: AbortSignal, report: Report): Promise<void> {
  const { checkUpstream } = await import("./check-upstream.ts");
  if (config.sandboxAddress) {
    report(findings("upstream").skipped("no UPSTREAM_URL: the sandbox starts with the gateway"));
  } else {
    for (const account of config.accounts.values()) {
      const finding = await checkUpstream(account, config, signal);
      if (signal.aborted) return;
      report(finding);
    }
  }
  if (config.redis) {
    const { checkRedis } = await import("./check-redis.ts");
    report(...(await checkRedis(config.redis)));
  } else if (config.dataDirectory !== undefined) {
    report(await checkDataDirectory(config.dataDirectory));
  }
  if (signal.aborted) return;
  report(await checkPublicUrl(config), await checkKeySet(config));
}

/** Reads the database in DATA_DIR from end to end. */
async function checkDataDirectory(directory: string): Promise<Finding> {
  const { inspectDirectory } = await import("../stores/sqlite/inspect.ts");
  const { ok, warning, failed } = findings("DATA_DIR");
  const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20).toLocaleString("en")} MiB`;
  try {
    const { lockedBy, database, freeBytes } = inspectDirectory(directory);
    const found = database
      ? `${mebibytes(database.bytes)}, schema version ${database.version}, every page is in order`
      : "not there yet: created at the first start";
    const told = `${found}; ${mebibytes(freeBytes)} are free`;
    if (lockedBy === undefined) return ok(told);
    return warning(
      `${told}; held by the process with the pid ${lockedBy}`,
      "fine if your gateway is running: a second one would not start",
    );
  } catch (error) {
    if (!(error instanceof StoreRefused)) throw error;
    return failed(error.message);
  }
}

/** Looks whether a gateway answers at PUBLIC_URL. From here it may be out of reach all the same. */
async function checkPublicUrl({ publicUrl, accounts }: Config): Promise<Finding> {
  const { ok, warning, skipped } = findings("PUBLIC_URL");
  if (publicUrl === undefined) return skipped("not set: the upstream is on this machine");
  const [account = "default"] = accounts.keys();
  const url = `${withoutUserinfo(publicUrl)}/callbacks/${encodeURIComponent(account)}/payments`;
  const signal = AbortSignal.timeout(5_000);
  const answer = await fetch(url, { redirect: "manual", signal }).catch((error: unknown) => error);
  const status = answer instanceof Response ? answer.status : undefined;
  if (status === 405) return ok(`${url} leads to a gateway`);
  return warning(
    `${url} ${status ? `answers ${status}` : `does not answer: ${await faultOf(answer, url)}`}`,
    "fine before the gateway runs; otherwise correct it: the payments service sends its callbacks there",
  );
}

/** Fetches the JWT issuer's keys as the gateway does; `checkFiles` has read those in a file. */
async function checkKeySet({ auth }: Config): Promise<Finding> {
  const { ok, failed, skipped } = findings("JWT keys");
  const source = auth.jwt?.keySet;
  if (!source) return skipped("AUTH_MODE has no jwt");
  if ("file" in source) return ok("a key set in a file");
  let problem: string | undefined;
  const { keyOf } = remoteKeySet(source.url, (reason) => {
    problem = reason;
  });
  // Which key is asked for does not matter: the set is fetched for it.
  await Promise.resolve(keyOf({ alg: "RS256" }, { payload: "", signature: "" })).catch(() => {});
  if (problem === undefined) return ok("a key set at AUTH_JWKS_URL");
  const advice = "correct AUTH_JWKS_URL: without it no JWT can be verified";
  return failed(`AUTH_JWKS_URL cannot be read: ${problem}`, advice);
}

const marks = {
  ok: () => paint("green", "✓"),
  warning: () => paint("yellow", "!"),
  failed: () => paint("red", "✗"),
  skipped: () => paint("dim", "-"),
} as const;

function lineOf({ check, verdict, message, advice }: Finding): string {
  const line = `${marks[verdict]()} ${check.padEnd(16)}  ${message}`;
  return advice === undefined ? line : `${line}\n${" ".repeat(20)}→ ${advice}`;
}

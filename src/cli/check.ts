import type { Command } from "commander";
import { checkFiles } from "../app/check-files.ts";
import { type Config, readConfig } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { ConfigError } from "../errors.ts";
import { checkApiKeys, checkKeySet, checkPublicUrl, checkTls } from "./check-surroundings.ts";
import { CommandError, exitCodes, interruption } from "./command-error.ts";
import { type Finding, findings } from "./finding.ts";
import { paint, print, printJson } from "./terminal.ts";

const help = `
Reads the same variables as \`serve\`, by the same code, and the files that they name. Then it goes
out: each merchant account looks up a payout that does not exist (a read that moves nothing, shows
whether the credentials are taken, and costs one request of the account's budget, up to three if no
answer comes); Redis is asked for its version, persistence, eviction and replicas, and runs a script
on keys that are removed again; the database in DATA_DIR is read from end to end; PUBLIC_URL is
resolved and called; TLS files, API keys and the key set of JWTs are looked at. --offline only validates, and reaches nothing.

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
  if (config) {
    report(checkTls(config), checkApiKeys(config));
    if (!offline) await goOut(config, signal, report);
  }
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
    const { checkDataDirectory } = await import("./check-data-directory.ts");
    report(...checkDataDirectory(config.dataDirectory));
  }
  if (signal.aborted) return;
  report(await checkPublicUrl(config), await checkKeySet(config));
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

import { type Config, readConfig } from "../config/config.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { ConfigError } from "../errors.ts";
import type { Logger } from "../report.ts";
import { createLogger, type LogFormat } from "../telemetry/log.ts";
import { checkFiles } from "./check-files.ts";
import { startGateway } from "./gateway.ts";

/**
 * Runs the process: reads the configuration, starts the gateway, logs `ready`, and drains on
 * SIGTERM or SIGINT.
 * @throws ConfigError for a wrong configuration
 */
export async function serve(env: NodeJS.ProcessEnv): Promise<void> {
  const config = await configOf(env);
  const log = createLogger(config.logLevel, undefined, config.logFormat);
  endOnUncaught(log);
  // The driver of Redis warns past the log, as where a user may not call INFO.
  console.warn = (warning: unknown) => log.warn(String(warning));
  for (const warning of unknownVariables(env)) log.warn(warning);
  const gateway = await startGateway(config, log);
  const { publicUrl, rpcUrl, adminUrl, sandboxUrl } = gateway;
  // Before `ready` is logged: a signal may follow as soon as it is read.
  stopOnSignal(log, gateway);
  const sandbox = sandboxUrl ? ` sandbox=${sandboxUrl}` : "";
  announce(`ready public=${publicUrl} rpc=${rpcUrl} admin=${adminUrl}${sandbox}`, config.logFormat);
  if (sandboxUrl) {
    // The shop's pages call without credentials, so that there is none where callers need some.
    const shop = config.auth.modes.has("none") ? `  shop ${publicUrl}/demo` : "";
    log.info(`to open: console ${adminUrl}/${shop}  GraphiQL ${publicUrl}/graphql`);
  }
}

/** @throws ConfigError also for misspelt variables: one is often why another is missing */
async function configOf(env: NodeJS.ProcessEnv): Promise<Config> {
  try {
    const config = readConfig(env);
    await checkFiles(config);
    return config;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    throw new ConfigError([...error.mistakes, ...unknownVariables(env)]);
  }
}

/** The ready line is part of the contract: it is printed at every log level. */
export function announce(message: string, format: LogFormat | undefined): void {
  createLogger("info", undefined, format).info(message);
}

/** Calls `stop` at the first signal, then exits with 0 (1 if it fails); ignores further signals. */
export function stopOnSignal(log: Logger, running: { stop(): Promise<void> }): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) return;
    stopping = true;
    const beganMs = performance.now();
    log.info({ signal }, "stopping");
    running.stop().then(
      () => {
        log.info({ durationMs: Math.round(performance.now() - beganMs) }, "stopped");
        process.exit(0);
      },
      (error: unknown) => {
        log.error({ err: error }, "shutdown failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/** Node itself would print the error's message and members, which may hold secrets. */
function endOnUncaught(log: Logger): void {
  // Node's warnings go to standard error: one that cannot be written is no reason to end.
  process.stderr.removeAllListeners("error").on("error", () => {});
  process.on("uncaughtException", (error) => {
    log.fatal({ err: error }, "uncaught error: exiting");
    process.exit(1);
  });
}

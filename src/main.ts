import { type Logger, pino } from "pino";
import { ConfigError, readConfig } from "./config.ts";
import { startGateway } from "./gateway.ts";

/**
 * The process: reads the configuration, starts the gateway, says `ready`, and drains on SIGTERM or
 * SIGINT. A wrong configuration ends it with exit code 78 (EX_CONFIG) and one message.
 */
export async function serve(env: NodeJS.ProcessEnv): Promise<void> {
  try {
    const config = readConfig(env);
    const log = createLogger(config.logLevel);
    const gateway = await startGateway(config, log);
    const { publicUrl, rpcUrl, adminUrl, sandboxUrl } = gateway;
    announce(
      log,
      `ready public=${publicUrl} rpc=${rpcUrl} admin=${adminUrl}${sandboxUrl ? ` sandbox=${sandboxUrl}` : ""}`,
    );
    stopOnSignal(log, gateway);
  } catch (error) {
    exitWith(error);
  }
}

/** One JSON record a line on standard output. */
export function createLogger(level: string): Logger {
  return pino({
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  });
}

/** The ready line is part of the contract: it is printed at every log level. */
export function announce(log: Logger, message: string): void {
  if (log.isLevelEnabled("info")) log.info(message);
  else createLogger("info").info(message);
}

/** Exits 0 after `stop`, at the first signal; later ones change nothing. */
export function stopOnSignal(log: Logger, running: { stop(): Promise<void> }): void {
  let stopping = false;
  const stop = (signal: NodeJS.Signals) => {
    if (stopping) return;
    stopping = true;
    log.info({ signal }, "stopping");
    running.stop().then(
      () => process.exit(0),
      (error: unknown) => {
        log.error({ err: error }, "stopping failed");
        process.exit(1);
      },
    );
  };
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

/** EX_CONFIG of sysexits.h. */
const exitConfig = 78;

/** Prints what went wrong at start, once, and exits. */
export function exitWith(error: unknown): never {
  if (error instanceof ConfigError) {
    console.error(error.message);
    process.exit(exitConfig);
  }
  console.error(error);
  process.exit(1);
}

import type { Command } from "commander";
import { startEmulator } from "../app/emulator.ts";
import { announce, stopOnSignal } from "../app/serve.ts";
import { readSandboxConfig } from "../config/config.ts";
import type { Environment } from "../config/environment.ts";
import { createLogger } from "../telemetry/log.ts";

const help = `
It listens on SANDBOX_ADDR (127.0.0.1:4010) and takes UPSTREAM_LOGIN and UPSTREAM_PASSWORD (sandbox,
sandbox-password). \`payments-gateway serve\` has one inside when it has no UPSTREAM_URL.

Examples:
  $ payments-gateway sandbox
  $ SANDBOX_ADDR=127.0.0.1:9000 payments-gateway sandbox`;

export function configure(command: Command, env: Environment): void {
  command.addHelpText("after", help).action(() => sandbox(env));
}

async function sandbox(env: Environment): Promise<void> {
  const config = readSandboxConfig(env);
  const log = createLogger(config.logLevel, undefined, config.logFormat);
  const running = await startEmulator(config);
  stopOnSignal(log, { stop: () => running.close() });
  announce(`ready sandbox=${running.url}`, config.logFormat);
}

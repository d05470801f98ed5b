#!/usr/bin/env node
import { readSandboxConfig } from "./config.ts";
import { createLogger } from "./log.ts";
import { announce, exitWith, serve, stopOnSignal } from "./main.ts";
import { startSandbox } from "./sandbox/server.ts";

const usage = `usage: payments-gateway <command>

commands:
  serve     run the gateway (as \`npm start\` does); configured by environment variables
  sandbox   run the emulator of the payments service alone, on SANDBOX_ADDR
  help      show this

exit codes: 0 fine, 64 wrong usage, 78 wrong configuration
`;

/** EX_USAGE of sysexits.h. */
const exitUsage = 64;

const [command, ...rest] = process.argv.slice(2);
if (rest.length > 0) wrongUsage(`${command} takes no arguments`);
switch (command) {
  case "serve":
    await serve(process.env);
    break;
  case "sandbox":
    await sandbox(process.env);
    break;
  case "help":
  case "--help":
  case "-h":
    process.stdout.write(usage);
    break;
  default:
    wrongUsage(command ? `unknown command: ${command}` : "which command?");
}

async function sandbox(env: NodeJS.ProcessEnv): Promise<void> {
  try {
    const { address, login, password, logLevel } = readSandboxConfig(env);
    const log = createLogger(logLevel);
    const running = await startSandbox({ ...address, login, password });
    stopOnSignal(log, { stop: () => running.close() });
    announce(log, `ready sandbox=${running.url}`);
  } catch (error) {
    exitWith(error);
  }
}

function wrongUsage(message: string): never {
  process.stderr.write(`${message}\n\n${usage}`);
  process.exit(exitUsage);
}

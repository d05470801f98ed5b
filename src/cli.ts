#!/usr/bin/env node
import { CommanderError } from "commander";
import { CommandError, type ExitCode, exitCodes } from "./cli/command-error.ts";
import { commands, createProgram } from "./cli/program.ts";

/** `| head` ends the reading: nobody is left to tell. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}

try {
  await createProgram(process.env).parseAsync(helpAsOption(process.argv.slice(2)), {
    from: "user",
  });
} catch (error) {
  process.exitCode = await tell(error);
}

/** `help` and `help check` are asked for as options, for which a command is loaded. */
function helpAsOption(args: readonly string[]): string[] {
  const [first, name, ...rest] = args;
  if (first !== "help") return [...args];
  if (name === undefined) return ["--help"];
  return commands.some((command) => command.name === name) ? [name, ...rest, "--help"] : [name];
}

/** Says what went wrong, once, and with which exit code to end. */
async function tell(error: unknown): Promise<ExitCode> {
  // The parser has printed its own words.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
  if (error instanceof CommandError) {
    if (error.message) process.stderr.write(`error: ${error.message}\n`);
    return error.exitCode;
  }
  const [{ ConfigError }, { loggable }] = await Promise.all([
    import("./config/config-error.ts"),
    import("./telemetry/loggable.ts"),
  ]);
  if (error instanceof ConfigError) {
    process.stderr.write(`${error.message}\n`);
    return exitCodes.config;
  }
  process.stderr.write(`${JSON.stringify(loggable(error), undefined, 2)}\n`);
  return exitCodes.failed;
}

import { CommanderError } from "commander";
import { CommandError, type ExitCode, exitCodes } from "./command-error.ts";
import { commands, createProgram } from "./program.ts";

/**
 * Runs the command that the arguments name. Errors go to standard error.
 *
 * @returns the exit code of the process
 */
export async function runCommandLine(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<ExitCode> {
  try {
    await createProgram(env).parseAsync(helpAsOption(args), { from: "user" });
    return exitCodes.done;
  } catch (error) {
    return report(error);
  }
}

/** Turns `help check` into `check --help`, since a command's own help needs its code loaded. */
function helpAsOption(args: readonly string[]): string[] {
  const [first, name, ...rest] = args;
  if (first !== "help") return [...args];
  if (name === undefined) return ["--help"];
  return Object.hasOwn(commands, name) ? [name, ...rest, "--help"] : [name];
}

/** Prints the error once and returns the exit code. */
async function report(error: unknown): Promise<ExitCode> {
  // The parser has already printed its message.
  if (error instanceof CommanderError) {
    return error.exitCode === 0 ? exitCodes.done : exitCodes.usage;
  }
  if (error instanceof CommandError) {
    if (error.message) process.stderr.write(`error: ${error.message}\n`);
    return error.exitCode;
  }
  const [{ ConfigError }, { StoreRefused }, { loggable }] = await Promise.all([
    import("../errors.ts"),
    import("../stores/sqlite/errors.ts"),
    import("../telemetry/loggable.ts"),
  ]);
  if (error instanceof ConfigError) {
    process.stderr.write(`${error.message}\n`);
    return exitCodes.config;
  }
  if (error instanceof StoreRefused) {
    process.stderr.write(`error: ${error.about}: ${error.message}\n`);
    return exitCodes.failed;
  }
  process.stderr.write(`${JSON.stringify(loggable(error), undefined, 2)}\n`);
  return exitCodes.failed;
}

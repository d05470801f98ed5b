import { Command, CommanderError } from "commander";
import { version } from "../version.ts";
import { CommandError, type ExitCode, exitCodes } from "./command-error.ts";

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

/** The whole command line. Parsing throws CommanderError, and whatever the command throws. */
export function createProgram(env: NodeJS.ProcessEnv): Command {
  const program = new Command("payments-gateway")
    .usage("<command> [options]")
    .description("Typed RPC, GraphQL and live updates in front of a payments REST service.")
    .version(version, "--version", "print the version")
    .helpOption("-h, --help", "show this")
    .helpCommand(false)
    .exitOverride()
    .addHelpText("after", help);
  for (const [name, [summary]] of Object.entries(commands)) {
    program
      .command(name)
      .description(summary)
      .showHelpAfterError(`see: payments-gateway help ${name}`);
  }
  program.showHelpAfterError("see: payments-gateway help");
  return program.hook("preSubcommand", async (_, command) => {
    const [, load] = commands[command.name()]!;
    const { configure } = await load();
    configure(command, env);
  });
}

/** A command. Its code is loaded only when used, so `--help` and short commands start fast. */
type Listed = readonly [
  summary: string,
  load: () => Promise<{ configure(command: Command, env: NodeJS.ProcessEnv): void }>,
];

/** The commands by their names. */
export const commands: Readonly<Record<string, Listed>> = {
  serve: ["run the gateway", () => import("./serve.ts")],
  sandbox: ["run the emulator of the payments service alone", () => import("./sandbox.ts")],
  check: [
    "check the configuration and what it names: upstream, Redis, DATA_DIR, keys",
    () => import("./check.ts"),
  ],
  listen: [
    "show events as they come, and pass callbacks on to a local service",
    () => import("@payments-gateway/devtools/listen"),
  ],
  trigger: [
    "make an event, by the sandbox or by a signed callback",
    () => import("@payments-gateway/devtools/trigger"),
  ],
  sign: ["sign a callback's body", () => import("@payments-gateway/devtools/sign")],
  verify: [
    "tell whether a callback's signature is right",
    () => import("@payments-gateway/devtools/verify"),
  ],
  keys: ["make API keys with their entries for API_KEYS_FILE", () => import("./keys.ts")],
  token: ["make a token to watch one payment or payout", () => import("./token.ts")],
  payments: ["list payments by their state", () => import("./payments.ts")],
  payouts: ["list payouts by their state", () => import("./payments.ts")],
  story: ["tell what happened to one payment or payout", () => import("./story.ts")],
  "dead-letters": [
    "list, show, replay and discard callbacks that were not understood",
    () => import("./dead-letters.ts"),
  ],
  backup: [
    "copy the state in DATA_DIR into one file, while the gateway runs",
    () => import("./backup.ts"),
  ],
  migrate: ["move the state in DATA_DIR to Redis", () => import("./migrate.ts")],
};

const help = `
Each command's options and examples: payments-gateway help <command>

Exit codes:
  0    done
  1    the answer is no, or it did not work
  64   wrong usage
  69   what the command needs to reach does not answer
  78   wrong configuration
  130  interrupted

Colours are for terminals alone; NO_COLOR and FORCE_COLOR are heeded.`;

#!/usr/bin/env node
import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { CommandError, type ExitCode, exitCodes } from "./cli/command-error.ts";

/** A command's code is loaded when it is asked for: `--help` and short commands start fast. */
interface Listed {
  readonly name: string;
  readonly summary: string;
  load(): Promise<{ configure(command: Command, env: NodeJS.ProcessEnv): void }>;
}

const commands: readonly Listed[] = [
  {
    name: "serve",
    summary: "run the gateway",
    load: () => import("./cli/serve.ts"),
  },
  {
    name: "sandbox",
    summary: "run the emulator of the payments service alone",
    load: () => import("./cli/sandbox.ts"),
  },
  {
    name: "check",
    summary: "check the configuration and what it names: upstream, Redis, TLS, keys",
    load: () => import("./cli/check.ts"),
  },
  {
    name: "listen",
    summary: "show events as they come, and pass callbacks on to a local service",
    load: () => import("./cli/listen.ts"),
  },
  {
    name: "trigger",
    summary: "make an event, by the sandbox or by a signed callback",
    load: () => import("./cli/trigger.ts"),
  },
  {
    name: "sign",
    summary: "sign a callback's body",
    load: () => import("./cli/sign.ts"),
  },
  {
    name: "verify",
    summary: "tell whether a callback's signature is right",
    load: () => import("./cli/verify.ts"),
  },
  {
    name: "keys",
    summary: "make API keys and their hashes",
    load: () => import("./cli/keys.ts"),
  },
  {
    name: "token",
    summary: "make a token to watch one payment or payout",
    load: () => import("./cli/token.ts"),
  },
  {
    name: "dead-letters",
    summary: "list, show and replay callbacks that were not understood",
    load: () => import("./cli/dead-letters.ts"),
  },
];

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

/** `| head` ends the reading: nobody is left to tell. */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
    process.exit();
  });
}

try {
  await programOf(process.env).parseAsync(helpAsOption(process.argv.slice(2)), { from: "user" });
} catch (error) {
  process.exitCode = await tell(error);
}

function programOf(env: NodeJS.ProcessEnv): Command {
  const program = new Command("payments-gateway")
    .usage("<command> [options]")
    .description("Typed RPC, GraphQL and live updates in front of a payments REST service.")
    .version(versionOf(), "--version", "print the version")
    .helpOption("-h, --help", "show this")
    .helpCommand(false)
    .exitOverride()
    .addHelpText("after", help);
  for (const { name, summary } of commands) {
    program.command(name).summary(summary).showHelpAfterError(`see: payments-gateway help ${name}`);
  }
  program.showHelpAfterError("see: payments-gateway help");
  return program.hook("preSubcommand", async (_, command) => {
    const { configure } = await commands.find(({ name }) => name === command.name())!.load();
    configure(command, env);
  });
}

/** `help` and `help check` are asked for as options, for which a command is loaded. */
function helpAsOption(args: readonly string[]): string[] {
  const [first, name, ...rest] = args;
  if (first !== "help") return [...args];
  if (name === undefined) return ["--help"];
  return commands.some((command) => command.name === name) ? [name, ...rest, "--help"] : [name];
}

function versionOf(): string {
  const file = readFileSync(new URL("../package.json", import.meta.url), "utf8");
  return (JSON.parse(file) as { version: string }).version;
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
    import("./config.ts"),
    import("./loggable.ts"),
  ]);
  if (error instanceof ConfigError) {
    process.stderr.write(`${error.message}\n`);
    return exitCodes.config;
  }
  process.stderr.write(`${JSON.stringify(loggable(error), undefined, 2)}\n`);
  return exitCodes.failed;
}

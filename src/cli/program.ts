import { readFileSync } from "node:fs";
import { Command } from "commander";

/** The whole command line. Parsing throws CommanderError, and whatever the command throws. */
export function createProgram(env: NodeJS.ProcessEnv): Command {
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

/** A command. Its code is loaded only when used, so `--help` and short commands start fast. */
interface Listed {
  readonly name: string;
  readonly summary: string;
  load(): Promise<{ configure(command: Command, env: NodeJS.ProcessEnv): void }>;
}

export const commands: readonly Listed[] = [
  {
    name: "serve",
    summary: "run the gateway",
    load: () => import("./serve.ts"),
  },
  {
    name: "sandbox",
    summary: "run the emulator of the payments service alone",
    load: () => import("./sandbox.ts"),
  },
  {
    name: "check",
    summary: "check the configuration and what it names: upstream, Redis, TLS, keys",
    load: () => import("./check.ts"),
  },
  {
    name: "listen",
    summary: "show events as they come, and pass callbacks on to a local service",
    load: () => import("@payments-gateway/devtools/listen"),
  },
  {
    name: "trigger",
    summary: "make an event, by the sandbox or by a signed callback",
    load: () => import("@payments-gateway/devtools/trigger"),
  },
  {
    name: "sign",
    summary: "sign a callback's body",
    load: () => import("@payments-gateway/devtools/sign"),
  },
  {
    name: "verify",
    summary: "tell whether a callback's signature is right",
    load: () => import("@payments-gateway/devtools/verify"),
  },
  {
    name: "keys",
    summary: "make API keys and their hashes",
    load: () => import("./keys.ts"),
  },
  {
    name: "token",
    summary: "make a token to watch one payment or payout",
    load: () => import("./token.ts"),
  },
  {
    name: "payments",
    summary: "list payments by their state",
    load: () => import("./payments.ts"),
  },
  {
    name: "payouts",
    summary: "list payouts by their state",
    load: () => import("./payments.ts"),
  },
  {
    name: "story",
    summary: "tell what happened to one payment or payout",
    load: () => import("./story.ts"),
  },
  {
    name: "dead-letters",
    summary: "list, show, replay and discard callbacks that were not understood",
    load: () => import("./dead-letters.ts"),
  },
  {
    name: "backup",
    summary: "copy the state in DATA_DIR into one file, while the gateway runs",
    load: () => import("./backup.ts"),
  },
  {
    name: "migrate",
    summary: "move the state in DATA_DIR to Redis",
    load: () => import("./migrate.ts"),
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

function versionOf(): string {
  const file = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(file) as { version: string }).version;
}

import type { Command } from "commander";
import {
  type AdminOptions,
  type AskAdmin,
  addAdminOptions,
  createAskAdmin,
} from "./admin-client.ts";
import { CommandError, exitCodes, QuietEnd, wrongUsage } from "./command-error.ts";
import { interruption } from "./interrupt.ts";
import type { Environment } from "./secrets.ts";
import { note, paint, print, printable, printJson, startProgress } from "./terminal.ts";

const help = `
A dead letter is a callback whose signature was right and whose body was not understood: the gateway
answered 200 and kept it whole. It goes away when a replay understands it, say after an upgrade.

When the gateway's callers authenticate, PAYMENTS_GATEWAY_KEY (or --key-file) has to hold a key with
the scope admin.`;

const listHelp = `
Examples:
  $ payments-gateway dead-letters list
  $ payments-gateway dead-letters list --account shop --json | jq -r .id`;

const showHelp = `
Card numbers are masked, and members that the contract or common use knows as secrets are hidden:
numbers, tokens, cvv, expiry, cryptograms. --raw writes the bytes as they came, for \`verify\` or a
bug report, and with them whatever they hold.

Examples:
  $ payments-gateway dead-letters show 3fa1c2
  $ payments-gateway dead-letters show 3fa1c2 --raw > body.json`;

const replayHelp = `
Exit codes: 0 all were understood or known already, 1 some were not.

Examples:
  $ payments-gateway dead-letters replay 3fa1c2
  $ payments-gateway dead-letters replay --all --account shop`;

interface Options extends AdminOptions {
  readonly account?: string;
  readonly all?: boolean;
  readonly raw?: boolean;
  readonly json?: boolean;
}

export function configure(command: Command, env: Environment): void {
  command.description("Callbacks that were not understood.").addHelpText("after", help);
  const add = (usage: string, description: string) =>
    addAdminOptions(
      command
        .command(usage)
        .description(description)
        .option("--account <name>", "of this merchant account alone"),
    );
  add("list", "Lists dead letters, the newest first.")
    .option("--json", "one JSON object a line")
    .addHelpText("after", listHelp)
    .action((options: Options) => list(options, createAskAdmin(options, env, interruption())));
  add("show", "Shows one, with its body masked.")
    .argument("<id>", "its id, or the id's first characters")
    .option("--raw", "write the body's bytes as they came, and nothing else")
    .option("--json", "print it as JSON, with the masked body")
    .addHelpText("after", showHelp)
    .action((id: string, options: Options) =>
      show(id, options, createAskAdmin(options, env, interruption())),
    );
  add("replay", "Tries again to understand one, or all.")
    .argument("[id]", "its id, or the id's first characters")
    .option("--all", "all of them, the oldest first")
    .option("--json", "one JSON object a line: {account, id, outcome}")
    .addHelpText("after", replayHelp)
    .action((id: string | undefined, options: Options) => replay(id, options, env));
}

interface Letter {
  readonly account: string;
  readonly id: string;
  readonly resource: string;
  readonly reason: string;
  readonly receivedAt: string;
}

async function list(options: Options, ask: AskAdmin): Promise<void> {
  const letters = await lettersOf(options, ask);
  if (options.json) {
    for (const letter of letters) printJson(letter);
  } else {
    for (const letter of letters) print(letterLine(letter));
    if (letters.length === 0) note("no dead letters");
  }
}

async function show(id: string, options: Options, ask: AskAdmin): Promise<void> {
  const letter = letterOf(id, await lettersOf(options, ask));
  const { status, body } = await ask("GET", pathOf(letter));
  const { body: base64 = "" } = body as { body?: string };
  if (status !== 200) throw new CommandError(`the letter ${letter.id} is gone`);
  const bytes = Buffer.from(base64, "base64");
  if (options.raw) {
    note("the body as it came: it may hold card data and what a terminal obeys");
    process.stdout.write(bytes);
    return;
  }
  const { maskedBody } = await import("./masked-body.ts");
  if (options.json) return printJson({ ...letter, body: maskedBody(bytes) });
  print(letterLine(letter));
  print(maskedBody(bytes));
}

async function replay(id: string | undefined, options: Options, env: Environment): Promise<void> {
  if ((id === undefined) === !options.all) throw wrongUsage("give an id, or --all");
  const signal = interruption();
  const ask = createAskAdmin(options, env, signal);
  const letters = await lettersOf(options, ask);
  // The oldest first: their events get into the log in the order in which they came.
  const chosen = id === undefined ? letters.toReversed() : [letterOf(id, letters)];
  const progress = startProgress("replayed", chosen.length);
  const counts = new Map<string, number>();
  try {
    for (const letter of chosen) {
      if (signal.aborted) break;
      const outcome = outcomeOf(await ask("POST", `${pathOf(letter)}/replay`));
      counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
      if (options.json) printJson({ account: letter.account, id: letter.id, outcome });
      progress.step();
    }
  } finally {
    progress.end();
  }
  if (!options.json) print(summaryOf(counts));
  if (signal.aborted) throw new CommandError("interrupted", exitCodes.interrupted);
  if (counts.has("not_understood")) throw new QuietEnd();
}

/** `stored`, `duplicate`, `not_understood`, or `gone` when another replay was faster. */
function outcomeOf({ status, body }: { status: number; body: unknown }): string {
  if (status === 404) return "gone";
  const { outcome } = body as { outcome?: string };
  if (outcome !== undefined) return printable(outcome);
  throw new CommandError(`the admin listener answered ${status}`);
}

const words: Readonly<Record<string, string>> = {
  stored: "understood now",
  duplicate: "known already",
  not_understood: "still not understood",
  gone: "gone before",
};

function summaryOf(counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return "no dead letters";
  return [...counts].map(([outcome, count]) => `${count} ${words[outcome] ?? outcome}`).join(", ");
}

async function lettersOf({ account, adminUrl }: Options, ask: AskAdmin): Promise<Letter[]> {
  const { status, body } = await ask("GET", "/dead-letters");
  const { dead_letters: letters } = (body ?? {}) as { dead_letters?: Letter[] };
  if (status !== 200 || !Array.isArray(letters)) {
    throw new CommandError(`${adminUrl} answers, but not as a gateway's admin listener does`);
  }
  return account === undefined ? letters : letters.filter((letter) => letter.account === account);
}

function letterOf(id: string, letters: readonly Letter[]): Letter {
  const found = letters.filter((letter) => letter.id.startsWith(id));
  const [letter, second] = found;
  if (!letter || id === "") throw new CommandError(`no dead letter ${JSON.stringify(id)}`);
  if (second) {
    const which = found.some((other) => other.id !== letter.id)
      ? "give more of it"
      : "give --account";
    throw wrongUsage(`${found.length} dead letters begin with ${JSON.stringify(id)}: ${which}`);
  }
  return letter;
}

function pathOf({ account, id }: Letter): string {
  return `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
}

function letterLine({ account, id, resource, reason, receivedAt }: Letter): string {
  return [
    paint("dim", printable(receivedAt)),
    paint("bold", printable(id.slice(0, 12))),
    printable(account),
    printable(resource),
    printable(reason),
  ].join("  ");
}

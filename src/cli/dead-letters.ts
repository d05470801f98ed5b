import type { Command } from "commander";
import type { DeadLetterDetails, DeadLetterPage, DeadLetterView } from "../admin/console-api.ts";
import type { Environment } from "../config/environment.ts";
import {
  type AdminOptions,
  type AskAdmin,
  addAdminOptions,
  adminHelp,
  createAskAdmin,
  notAnAdminListener,
} from "./admin-client.ts";
import { CommandError, interruption, wrongUsage } from "./command-error.ts";
import { wholeNumber } from "./gateway-options.ts";
import { note, paint, print, printable, printJson } from "./terminal.ts";

const help = `
A dead letter is a callback whose signature was right and whose body was not understood: the gateway
answered 200 and kept it whole. It goes away when a replay understands it, say after an upgrade, or
when an operator discards it.

${adminHelp}`;

const listHelp = `
Examples:
  $ payments-gateway dead-letters list --limit 20
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

const discardHelp = `
For what will never be understood, such as a test of somebody's. It is gone for good, nothing of it
is in the event log, and the gateway logs who did it. If the payments service sends the same again,
it is here again.

Exit codes: 0 all are gone, 1 one was not there.

Examples:
  $ payments-gateway dead-letters discard 3fa1c2 --yes
  $ payments-gateway dead-letters list --json | jq -r .id \\
      | xargs payments-gateway dead-letters discard --yes`;

interface Options extends AdminOptions {
  readonly limit?: number;
  readonly all?: boolean;
  readonly raw?: boolean;
  readonly json?: boolean;
  readonly yes?: boolean;
}

export function configure(command: Command, env: Environment): void {
  command.addHelpText("after", help);
  const add = (usage: string, description: string) =>
    addAdminOptions(command.command(usage).description(description));
  add("list", "Lists dead letters, the newest first.")
    .option("--limit <n>", "no more than so many", wholeNumber)
    .option("--json", "one JSON object a line")
    .addHelpText("after", listHelp)
    .action((options: Options) => list(options, createAskAdmin(options, env)));
  add("show", "Shows one, with its body masked.")
    .argument("<id>", "its id, or the id's first characters")
    .option("--raw", "write the body's bytes as they came, and nothing else")
    .option("--json", "print it as JSON, with the masked body")
    .addHelpText("after", showHelp)
    .action((id: string, options: Options) => show(id, options, createAskAdmin(options, env)));
  add("replay", "Tries again to understand one, or all.")
    .argument("[id]", "its id, or the id's first characters")
    .option("--all", "all of them, the oldest first")
    .option("--json", "one JSON object a line: {account, id, outcome}")
    .addHelpText("after", replayHelp)
    .action((id: string | undefined, options: Options) => replay(id, options, env));
  add("discard", "Gives up what will never be understood. It is gone then.")
    .argument("<id...>", "their ids, or the ids' first characters")
    .option("--yes", "confirm that they are gone for good")
    .addHelpText("after", discardHelp)
    .action((ids: string[], options: Options) =>
      discard(ids, options, createAskAdmin(options, env)),
    );
}

async function list(options: Options, ask: AskAdmin): Promise<void> {
  let listed = 0;
  for await (const letter of lettersBy("newest", options, ask)) {
    if (options.json) printJson(letter);
    else print(letterLine(letter));
    listed += 1;
    if (listed === options.limit) return;
  }
  if (listed === 0 && !options.json) note("no dead letters");
}

async function show(id: string, options: Options, ask: AskAdmin): Promise<void> {
  const [letter] = (await lettersOf([id], options, ask)) as [DeadLetterView];
  const path = `${pathOf(letter)}?raw=${options.raw ?? false}`;
  const details = await ask<DeadLetterDetails>("GET", path);
  if (details === undefined) throw new CommandError(`the letter ${letter.id} is gone`);
  const { body: base64 = "", text, bytes } = details;
  if (options.raw) {
    note("the body as it came: it may hold card data and what a terminal obeys");
    process.stdout.write(Buffer.from(base64, "base64"));
    return;
  }
  // Empty if it can no longer be decrypted.
  const noText = bytes === undefined ? "" : `[${bytes} bytes that are not UTF-8]`;
  const masked = text?.replace(/[^\n]+/g, printable) ?? noText;
  if (options.json) return printJson({ ...letter, body: masked });
  print(letterLine(letter));
  print(masked);
}

async function discard(ids: readonly string[], options: Options, ask: AskAdmin): Promise<void> {
  if (!options.yes)
    throw wrongUsage("a discarded letter cannot be restored: give --yes to confirm");
  // Find all of them before discarding the first one.
  const letters = await lettersOf(ids, options, ask);
  let gone = 0;
  for (const letter of letters) {
    if (await ask("DELETE", pathOf(letter))) gone += 1;
  }
  const before = letters.length - gone;
  print(`${gone} discarded${before > 0 ? `, ${before} gone before` : ""}`);
  if (before > 0) throw new CommandError("");
}

async function replay(id: string | undefined, options: Options, env: Environment): Promise<void> {
  if ((id === undefined) === !options.all) throw wrongUsage("give an id, or --all");
  const signal = interruption();
  const ask = createAskAdmin(options, env, signal);
  // The oldest first, so that the log gets their events in the order of arrival.
  const chosen =
    id === undefined ? lettersBy("oldest", options, ask) : await lettersOf([id], options, ask);
  const counts = new Map<string, number>();
  for await (const letter of chosen) {
    if (signal.aborted) break;
    const replayed = await ask<{ outcome: string }>("POST", `${pathOf(letter)}/replay`);
    const { outcome } = replayed ?? { outcome: "gone" };
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    if (options.json) printJson({ account: letter.account, id: letter.id, outcome });
  }
  if (!options.json) print(summaryOf(counts));
  signal.throwIfAborted();
  if (counts.has("not_understood") || counts.has("locked")) throw new CommandError("");
}

/** What becomes of a letter that is replayed. */
const words: Readonly<Record<string, string>> = {
  stored: "understood now",
  duplicate: "known already",
  not_understood: "still not understood",
  locked: "not decrypted: no configured password opens it",
  gone: "gone before",
};

function summaryOf(counts: ReadonlyMap<string, number>): string {
  if (counts.size === 0) return "no dead letters";
  return [...counts]
    .map(([outcome, count]) => `${count} ${words[outcome] ?? printable(outcome)}`)
    .join(", ");
}

function letterLine({ account, id, resource, reason, receivedAt }: DeadLetterView): string {
  return [
    paint("dim", printable(receivedAt)),
    paint("bold", printable(id.slice(0, 12))),
    printable(account),
    printable(resource),
    printable(reason),
  ].join("  ");
}

/** All letters, read page by page. Letters removed meanwhile do not shift the later pages. */
async function* lettersBy(
  order: "newest" | "oldest",
  { account, adminUrl }: Options,
  ask: AskAdmin,
): AsyncGenerator<DeadLetterView> {
  const query = new URLSearchParams({ order, ...(account !== undefined && { account }) });
  for (;;) {
    const page = await ask<DeadLetterPage>("GET", `/dead-letters?${query}`);
    if (!Array.isArray(page?.dead_letters)) throw notAnAdminListener(adminUrl);
    yield* page.dead_letters;
    if (page.next_cursor === undefined) return;
    query.set("cursor", page.next_cursor);
  }
}

/** The letter of each id or id prefix. @throws CommandError unless each matches exactly one */
async function lettersOf(
  ids: readonly string[],
  options: Options,
  ask: AskAdmin,
): Promise<DeadLetterView[]> {
  const all: DeadLetterView[] = [];
  for await (const letter of lettersBy("newest", options, ask)) all.push(letter);
  const found = ids.map((id) => {
    const [letter, ...more] = all.filter((one) => id !== "" && one.id.startsWith(id));
    if (!letter) throw new CommandError(`no dead letter ${JSON.stringify(id)}`);
    if (more.length === 0) return letter;
    const many = `${more.length + 1} dead letters begin with ${JSON.stringify(id)}`;
    throw wrongUsage(`${many}: give more of it`);
  });
  return [...new Set(found)];
}

function pathOf({ account, id }: DeadLetterView): string {
  return `/dead-letters/${encodeURIComponent(account)}/${encodeURIComponent(id)}`;
}

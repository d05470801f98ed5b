import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { CommanderError } from "commander";
import { marked, type Tokens } from "marked";
import { pages } from "../../scripts/docs/pages.ts";
import { commands, createProgram } from "../../src/cli/program.ts";
import { freshDirectory } from "../stores/sqlite/directories.ts";
import { timeoutMs } from "../until.ts";
import { codeBlocks, tokensOf } from "./markdown.ts";

/** A line of a shell, and where a reader finds it. */
export interface CommandLine {
  readonly where: string;
  readonly line: string;
  /** The line is part of a sentence, which may leave out arguments that the command requires. */
  readonly named?: boolean;
}

/** A line that a page shows with a prompt, and the output that the page shows for it. */
export interface Step {
  readonly line: string;
  readonly shown: string;
}

/** The steps of a block that shows a terminal. A backslash at its end continues a line. */
export function stepsOf(block: string): Step[] {
  const steps: { line: string; shown: string }[] = [];
  let goesOn = false;
  for (const row of block.split("\n")) {
    const step = steps.at(-1);
    if (row.startsWith("$ ")) steps.push({ line: row.slice(2), shown: "" });
    else if (step && goesOn) step.line += `\n${row}`;
    else if (step) step.shown += `${row}\n`;
    goesOn = (row.startsWith("$ ") || goesOn) && row.endsWith("\\");
  }
  return steps;
}

/** Every command that a page or the help of a command shows. */
export async function shownCommandLines(): Promise<CommandLine[]> {
  const found: CommandLine[] = [];
  for (const page of pages()) {
    for (const { lang, text: block } of await codeBlocks(page)) {
      if (lang === "sh") found.push({ where: page, line: block });
      if (!lang) found.push(...stepsOf(block).map(({ line }) => ({ where: page, line })));
    }
    marked.walkTokens(await tokensOf(page), (token) => {
      if (token.type !== "codespan") return;
      const { text: line } = token as Tokens.Codespan;
      if (isCommand.test(line)) found.push({ where: page, line, named: true });
    });
  }
  for (const name of Object.keys(commands)) {
    for (const line of await exampleLinesOf(name)) found.push({ where: `help ${name}`, line });
  }
  return found;
}

/** A command of the project, optionally with variables before it. */
const isCommand = /^([A-Z_]+=\S+ )*(npx |npm |payments-gateway |node dist\/cli\.js )/;

async function exampleLinesOf(name: string): Promise<string[]> {
  const help: string[] = [];
  const program = createProgram({}).configureOutput({ writeOut: (said) => help.push(said) });
  const ask = async (args: string[]) => program.parseAsync(args, { from: "user" }).catch(() => {});
  program.hook("preSubcommand", (_, command) => {
    for (const one of [command, ...command.commands]) {
      one.configureOutput({ writeOut: (said) => help.push(said) });
      if (one !== command) one.outputHelp();
    }
  });
  await ask([name, "--help"]);
  return help.flatMap((said) =>
    [...said.matchAll(/^ {2}\$ ((?:.*\\\n)*.*)$/gm)].map(([, line = ""]) => line),
  );
}

/** For each line the words of each of its commands, as a shell parses them. No command runs. */
export async function wordsOf(lines: readonly string[]): Promise<string[][][]> {
  const { path, remove } = freshDirectory();
  try {
    for (const [, input = ""] of lines.join("\n").matchAll(/<\s*([\w.-]+)/g)) {
      await writeFile(join(path, input), "");
    }
    // Each command has a process of its own, so `$BASHPID` gives each a file of its own.
    const script = `
      PATH=/nonexistent
      command_not_found_handle() { printf '%s\\0' "$@" > "${path}/words-$nth-$BASHPID"; }
      nth=0
      for line; do (eval "$line") || { echo "$line"; exit 1; } >&2; nth=$((nth + 1)); done`;
    const child = spawn("bash", ["-uc", script, "bash", ...lines], {
      cwd: path,
      env: { HOME: path },
      stdio: ["ignore", "ignore", "pipe"],
      timeout: timeoutMs,
    });
    const [errors, [code]] = await Promise.all([text(child.stderr), once(child, "close")]);
    if (code !== 0 || errors) throw new Error(`bash takes it for wrong: ${errors}`);
    const found: string[][][] = lines.map(() => []);
    for (const name of await readdir(path)) {
      const [, nth] = /^words-(\d+)-/.exec(name) ?? [];
      if (nth === undefined) continue;
      const words = await readFile(join(path, name), "utf8");
      found[Number(nth)]?.push(words.split("\0").slice(0, -1));
    }
    return found;
  } finally {
    remove();
  }
}

/** The command line's own error message for these arguments; undefined if it accepts them. */
export async function faultOf(args: readonly string[]): Promise<string | undefined> {
  const said: string[] = [];
  const quiet = { writeOut() {}, writeErr: (text: string) => void said.push(text) };
  const program = createProgram({}).configureOutput(quiet);
  program.hook("preSubcommand", (_, command) => {
    for (const one of [command, ...command.commands]) {
      one.configureOutput(quiet);
      if (one.commands.length === 0) one.action(() => {});
    }
  });
  try {
    await program.parseAsync([...args], { from: "user" });
    return undefined;
  } catch (error) {
    // The help was asked for, or a command with subcommands was given none of them.
    if (error instanceof CommanderError && helps.has(error.code)) return undefined;
    return said.join("") || String(error);
  }
}

const helps: ReadonlySet<string> = new Set(["commander.help", "commander.helpDisplayed"]);

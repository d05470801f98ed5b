import { hash, randomBytes } from "node:crypto";
import { type Command, Help } from "commander";
import { type FileEntry, parseKeys } from "../auth/api-keys.ts";
import { scopes as knownScopes } from "../auth/caller.ts";
import { wrongUsage } from "./command-error.ts";
import { note, paint, print, printJson } from "./terminal.ts";

const newHelp = `
The key is 256 random bits behind \`pgw_\`, shown this once and stored nowhere: its entry, which goes into
the list of API_KEYS_FILE, holds its hash. A running gateway reads a changed file within a second.

Scopes: ${new Help().boxWrap(knownScopes.join(", "), 90).replaceAll("\n", "\n  ")}.

Examples:
  $ payments-gateway keys new --name shop-backend --scopes payments:write,payments:read
  $ payments-gateway keys new --name reports --scopes events:read --merchants shop --json`;

interface NewOptions {
  readonly name: string;
  readonly scopes: string[];
  readonly merchants?: string[];
  readonly json?: boolean;
}

export function configure(command: Command): void {
  command
    .command("new")
    .description("Makes an API key and prints it, with its entry for API_KEYS_FILE.")
    .requiredOption("--name <name>", "who will use it; fit for logs")
    .requiredOption("--scopes <scopes>", "what it may do, joined by commas", listOf)
    .option("--merchants <accounts>", "accounts it is limited to, joined by commas", listOf)
    .option("--json", "print {key, entry}")
    .addHelpText("after", newHelp)
    .action(newKey);
}

function newKey({ name, scopes, merchants, json }: NewOptions): void {
  const key = `pgw_${randomBytes(32).toString("base64url")}`;
  const entry: FileEntry = {
    name,
    sha256: hash("sha256", key),
    scopes,
    ...(merchants && { merchants }),
  };
  try {
    parseKeys(JSON.stringify([entry]));
  } catch (error) {
    const { message } = error as Error;
    throw wrongUsage(message.replace(/^entry 0(\.(\w+)| \(.*?\))?: /, "$2 ").trimStart());
  }
  if (scopes.length === 0)
    throw wrongUsage("scopes at least one: a key without any may do nothing");
  if (json) {
    printJson({ key, entry });
    return;
  }
  note(paint("bold", "The key, shown this once:", process.stderr));
  print(key);
  note(paint("bold", "Its entry for API_KEYS_FILE:", process.stderr));
  print(JSON.stringify(entry));
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

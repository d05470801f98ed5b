import { hash, randomBytes } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { type Command, Help } from "commander";
import { type FileEntry, parseKeys } from "../auth/api-keys.ts";
import { scopes as knownScopes } from "../auth/caller.ts";
import { CommandError, wrongUsage } from "./command-error.ts";
import { note, paint, print, printJson } from "./terminal.ts";

const newHelp = `
The key is 256 random bits behind \`pgw_\`, shown this once and stored nowhere: the file holds its hash.
A running gateway reads a changed API_KEYS_FILE within a second. A new file is made with mode 0600;
one that is there keeps its mode and its owner, and is replaced as a whole.

Scopes: ${new Help().boxWrap(knownScopes.join(", "), 90).replaceAll("\n", "\n  ")}.

Examples:
  $ payments-gateway keys new --name shop-backend --scopes payments:write,payments:read \\
      --file keys.json
  $ payments-gateway keys new --name reports --scopes events:read --merchants shop --json`;

interface NewOptions {
  readonly name: string;
  readonly scopes: string[];
  readonly merchants?: string[];
  readonly file?: string;
  readonly json?: boolean;
}

export function configure(command: Command): void {
  command
    .command("new")
    .description("Makes an API key and prints it, with its entry for API_KEYS_FILE.")
    .requiredOption("--name <name>", "who will use it; fit for logs")
    .requiredOption("--scopes <scopes>", "what it may do, joined by commas", listOf)
    .option("--merchants <accounts>", "accounts it is limited to, joined by commas", listOf)
    .option("--file <file>", "API_KEYS_FILE to add the entry to")
    .option("--json", "print {key, entry}")
    .addHelpText("after", newHelp)
    .action(newKey);
}

function newKey({ name, scopes, merchants, file, json }: NewOptions): void {
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
  if (file !== undefined) addToKeysFile(file, entry);
  if (json) printJson({ key, entry });
  else printKey(key, entry, file);
}

function printKey(key: string, entry: FileEntry, file: string | undefined): void {
  note(paint("bold", "The key, shown this once:", process.stderr));
  print(key);
  if (file === undefined) {
    note(paint("bold", "Its entry for API_KEYS_FILE:", process.stderr));
    print(JSON.stringify(entry));
  } else {
    note(`Its entry is in ${file}.`);
  }
}

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

/**
 * Adds an entry to a file of API keys, and creates the file (mode 0600) if it is missing. A reader
 * sees either the whole old file or the whole new one; mode and owner stay. The new text is first
 * written to `<file>.new`, which also locks the file: two processes cannot lose each other's key.
 * The function is synchronous, so a signal handler runs before or after it.
 * @throws CommandError if it is not a file of keys, cannot be written, or already has that name
 */
function addToKeysFile(path: string, entry: FileEntry): void {
  // The target of a symbolic link is replaced, not the link.
  const file = existsSync(path) ? realpathSync(path) : path;
  const next = `${file}.new`;
  try {
    writeFileSync(next, "", { flag: "wx", mode: 0o600 });
    try {
      writeFileSync(next, withEntry(path, entry), { flush: true });
      const before = statSync(file, { throwIfNoEntry: false });
      if (before) {
        chmodSync(next, before.mode & 0o7777);
        chownSync(next, before.uid, before.gid);
      }
      renameSync(next, file);
    } catch (error) {
      rmSync(next, { force: true });
      throw error;
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code = "?" } = error as NodeJS.ErrnoException;
    throw new CommandError(
      code === "EEXIST"
        ? `${next} exists: another process is writing the keys file. If none is, remove it`
        : `${path} cannot be written (${code})`,
    );
  }
}

/** The file's text with the entry behind all others. @throws CommandError */
function withEntry(path: string, entry: FileEntry): string {
  try {
    const before = existsSync(path) ? readFileSync(path, "utf8") : "[]";
    parseKeys(before);
    const text = `${JSON.stringify([...JSON.parse(before), entry], undefined, 2)}\n`;
    parseKeys(text);
    return text;
  } catch (error) {
    throw wrongUsage(`${path}: ${(error as Error).message}`);
  }
}

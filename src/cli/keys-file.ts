import {
  chmodSync,
  chownSync,
  closeSync,
  fsyncSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname } from "node:path";
import { type FileEntry, parseKeys } from "../auth/api-keys.ts";
import { CommandError, wrongUsage } from "./command-error.ts";

/**
 * Adds an entry to a file of API keys, and creates the file (mode 0600) if it is missing. A reader
 * sees either the whole old file or the whole new one; mode and owner stay. The new text is first
 * written to `<file>.new`, which also locks the file: two processes cannot lose each other's key.
 * The function is synchronous, so a signal handler runs before or after it.
 * @throws CommandError if it is not a file of keys, cannot be written, or already has that name
 */
export function addToKeysFile(path: string, entry: FileEntry): void {
  const file = realPath(path);
  const next = `${file}.new`;
  const descriptor = openNext(next);
  try {
    const before = entriesOf(file);
    const text = `${JSON.stringify([...(before ?? []), entry], undefined, 2)}\n`;
    checked(path, text);
    writeFileSync(descriptor, text);
    if (before) {
      const { mode, uid, gid } = statSync(file);
      chmodSync(next, mode & 0o7777);
      if (uid !== process.getuid?.() || gid !== process.getgid?.()) chownSync(next, uid, gid);
    }
    fsyncSync(descriptor);
    renameSync(next, file);
    syncDirectory(dirname(file));
  } catch (error) {
    rmSync(next, { force: true });
    throw error instanceof CommandError ? error : notWritten(path, error);
  } finally {
    closeSync(descriptor);
  }
}

/** Follows a symbolic link, so that its target is replaced and not the link. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}

function openNext(next: string): number {
  try {
    return openSync(next, "wx", 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw notWritten(next, error);
    throw new CommandError(
      `${next} exists: another process is writing the keys file. If none is, remove it`,
    );
  }
}

/** Undefined if there is no such file. @throws CommandError if it is not a file of keys */
function entriesOf(file: string): readonly unknown[] | undefined {
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  checked(file, text);
  return JSON.parse(text) as unknown[];
}

/** @throws CommandError if the gateway would refuse the text */
function checked(path: string, text: string): void {
  try {
    parseKeys(text);
  } catch (error) {
    throw wrongUsage(`${path}: ${(error as Error).message}`);
  }
}

/** Makes the rename survive a crash, on systems where a directory can be opened. */
function syncDirectory(path: string): void {
  try {
    const descriptor = openSync(path, "r");
    fsyncSync(descriptor);
    closeSync(descriptor);
  } catch {
    // Windows cannot open a directory.
  }
}

function notWritten(path: string, error: unknown): CommandError {
  return new CommandError(
    `${path} cannot be written (${(error as NodeJS.ErrnoException).code ?? "?"})`,
  );
}

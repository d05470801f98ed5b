import {
  closeSync,
  existsSync,
  fchmodSync,
  fchownSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
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
  // The target of a symbolic link is replaced, not the link.
  const file = existsSync(path) ? realpathSync(path) : path;
  const next = `${file}.new`;
  try {
    const lock = openSync(next, "wx", 0o600);
    try {
      writeFileSync(lock, withEntry(file, path, entry), { flush: true });
      if (existsSync(file)) {
        const { mode, uid, gid } = statSync(file);
        fchmodSync(lock, mode & 0o7777);
        fchownSync(lock, uid, gid);
      }
      renameSync(next, file);
    } catch (error) {
      rmSync(next, { force: true });
      throw error;
    } finally {
      closeSync(lock);
    }
  } catch (error) {
    if (error instanceof CommandError) throw error;
    const { code = "?" } = error as NodeJS.ErrnoException;
    const why =
      code === "EEXIST"
        ? `${next} exists: another process is writing the keys file. If none is, remove it`
        : `${path} cannot be written (${code})`;
    throw new CommandError(why);
  }
}

/** The file's text with the entry behind all others. @throws CommandError */
function withEntry(file: string, path: string, entry: FileEntry): string {
  try {
    const before = existsSync(file) ? readFileSync(file, "utf8") : "[]";
    parseKeys(before);
    const text = `${JSON.stringify([...JSON.parse(before), entry], undefined, 2)}\n`;
    parseKeys(text);
    return text;
  } catch (error) {
    throw wrongUsage(`${path}: ${(error as Error).message}`);
  }
}

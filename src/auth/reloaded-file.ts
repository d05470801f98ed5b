import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { FileError } from "../errors.ts";
import type { Report } from "../report.ts";

/** A file of keys. */
export interface KeyFile {
  /** The environment variable that names it. */
  readonly variable: string;
  readonly path: string;
  /** Hears of new versions, and of those that cannot be used: then the previous one stays in force. */
  readonly report: Report;
  /** How often the file is checked, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number;
}

/**
 * Reads a file, and again whenever its attributes change. The operating system's file watchers are
 * not used: they lose a file that is replaced by a rename or behind a link, as tools and
 * orchestrators do.
 * @param parse throws an Error for a text that is not understood; its message must be safe to log
 * @param onChange a new version is in force
 * @throws FileError if the file's first version cannot be read or is wrong
 */
export function reloadedFile<Content>(
  { variable, path, report, intervalMs = 1_000 }: KeyFile,
  parse: (text: string) => Content,
  onChange?: (content: Content, before: Content) => void,
) {
  let text: string;
  let content: Content;
  try {
    text = readFileSync(path, "utf8");
    content = parse(text);
  } catch (error) {
    throw fileError(variable, error);
  }
  // Undefined, so that the first look reads again: it sees a change since the reading above.
  let seen: string | undefined;
  let looking = false;

  async function look(): Promise<void> {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    const now = [ino, size, mtimeNs, ctimeNs].join();
    if (now === seen) return;
    const newText = readFileSync(path, "utf8");
    // After reading, so that a failed read is repeated. Before parsing, so that a version that cannot
    // be used is reported once.
    seen = now;
    if (newText === text) return;
    const newContent = parse(newText);
    const before = content;
    text = newText;
    content = newContent;
    onChange?.(newContent, before);
    report("keysReloaded", { variable });
  }

  let missing = false;
  const timer = setInterval(async () => {
    if (looking) return;
    looking = true;
    try {
      await look();
      missing = false;
    } catch (error) {
      const nowMissing = (error as NodeJS.ErrnoException).code !== undefined;
      if (!nowMissing || !missing) {
        report("keysUnusable", { variable, error: fileError(variable, error) });
      }
      missing = nowMissing;
    }
    looking = false;
  }, intervalMs).unref();

  return {
    /** The parsed content of the newest valid version of the file. */
    get content(): Content {
      return content;
    },
    close: () => clearInterval(timer),
  };
}

function fileError(variable: string, error: unknown): FileError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new FileError(variable, code ? `cannot be read (${code})` : message);
}

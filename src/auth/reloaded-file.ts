import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";

export interface ReloadOptions<Content> {
  readonly path: string;
  /** @throws Error for a text that is not understood; its message must be safe to log. */
  readonly parse: (text: string) => Content;
  /** A new version is in force. */
  readonly onChange?: (content: Content, before: Content) => void;
  /** A new version could not be used: the previous one stays in force. */
  readonly onProblem: (error: unknown) => void;
  /** How often the file is checked, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number;
}

/** A file of keys, whose reader says how it is parsed. */
export interface KeyFile extends Pick<ReloadOptions<never>, "path" | "onProblem" | "intervalMs"> {
  /** A new version is in force. */
  readonly onReload: () => void;
}

/**
 * Reads a file, and again whenever its attributes change. The operating system's file watchers are
 * not used: they lose a file that is replaced by a rename or behind a link, as tools and
 * orchestrators do.
 * @throws what reading or `parse` throws for the file's first version
 */
export function reloadedFile<Content>(options: ReloadOptions<Content>) {
  const { path, parse, onChange, onProblem, intervalMs = 1_000 } = options;
  let text = readFileSync(path, "utf8");
  let content = parse(text);
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
      if (!nowMissing || !missing) onProblem(error);
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

import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";

/** A file that is read again whenever it changes. */
export interface ReloadedFile<Content> {
  /** What the newest good version of the file held. */
  readonly content: Content;
  close(): void;
}

export interface ReloadOptions<Content> {
  readonly path: string;
  /** @throws Error for a text that is not understood; its message must be fit for logs. */
  readonly parse: (text: string) => Content;
  /** A new version is in force. */
  readonly onChange?: (content: Content, before: Content) => void;
  /** A new version could not be used: the one before stays in force. */
  readonly onProblem: (error: unknown) => void;
  /** How often the file is looked at, in milliseconds. Default: 1,000. */
  readonly intervalMs?: number;
}

/**
 * Reads a file and keeps looking at it. The watchers of the operating system lose a file that is
 * replaced by a rename or behind a link, as tools and orchestrators do; its attributes show it.
 * @throws what reading or `parse` throws for the file's first version
 */
export function reloadedFile<Content>(options: ReloadOptions<Content>): ReloadedFile<Content> {
  const { path, parse, onChange, onProblem, intervalMs = 1_000 } = options;
  let text = readFileSync(path, "utf8");
  let content = parse(text);
  // Not known yet: a change between the reading and the first look would go unseen.
  let seen: string | undefined;
  let looking = false;

  async function look(): Promise<void> {
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    const now = [ino, size, mtimeNs, ctimeNs].join();
    if (now === seen) return;
    const newText = readFileSync(path, "utf8");
    // Only then: a file that could not be read is read again. A version that cannot be used is reported once.
    seen = now;
    if (newText === text) return;
    const newContent = parse(newText);
    const before = content;
    text = newText;
    content = newContent;
    onChange?.(newContent, before);
  }

  let missing = false;
  const timer = setInterval(() => {
    if (looking) return;
    looking = true;
    look()
      .then(
        () => {
          missing = false;
        },
        (error) => {
          const nowMissing = (error as NodeJS.ErrnoException).code !== undefined;
          if (!nowMissing || !missing) onProblem(error);
          missing = nowMissing;
        },
      )
      .finally(() => {
        looking = false;
      });
  }, intervalMs).unref();

  return {
    get content() {
      return content;
    },
    close: () => clearInterval(timer),
  };
}

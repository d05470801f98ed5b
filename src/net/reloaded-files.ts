import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { isDeepStrictEqual } from "node:util";
import { ConfigError } from "../errors.ts";
import type { Report } from "../report.ts";
import { repeat } from "./timer.ts";

/** A file that an environment variable names. */
export interface NamedFile {
  readonly variable: string;
  readonly path: string;
}

export interface ReloadOptions<Content> {
  /** Called when a new version is in force. */
  readonly onChange?: (content: Content, before: Content) => void;
  /**
   * Hears of new versions, and of those that cannot be used, once however long that lasts: the
   * previous one stays in force.
   */
  readonly report: Report;
  /** How often the files are read, in milliseconds. Default: 400, so that a change is in force within a second. */
  readonly intervalMs?: number | undefined;
}

/** A file, and how it is reloaded. */
export type ReloadedFile = NamedFile & Pick<ReloadOptions<never>, "report" | "intervalMs">;

/**
 * Reads files, and reads them again at each interval to detect changes: the operating system's file
 * watchers lose a file that is replaced by a rename or behind a link, as tools and orchestrators do. A
 * change takes effect once two consecutive reads agree: files that belong together may be written one
 * after the other.
 * @param parse the texts in the order of the files; throws an Error whose message is safe to log
 * @throws ConfigError for files that cannot be read or used at start
 */
export function reloadedFiles<Content>(
  files: readonly NamedFile[],
  parse: (texts: readonly string[]) => Content,
  { onChange, report, intervalMs = 400 }: ReloadOptions<Content>,
) {
  let inForce = files.map(readNow);
  let content = parsed(inForce);
  let lastSeen = inForce;
  let lastReported: string | undefined;

  function parsed(texts: readonly string[]): Content {
    try {
      return parse(texts);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      throw new ConfigError(files[0]?.variable ?? "", (error as Error).message);
    }
  }

  async function look(): Promise<void> {
    const seen = await Promise.all(files.map(readSoon));
    const atRest = isDeepStrictEqual(seen, lastSeen);
    lastSeen = seen;
    if (!atRest) return;
    if (!isDeepStrictEqual(seen, inForce)) {
      const before = content;
      content = parsed(seen);
      inForce = seen;
      onChange?.(content, before);
      report("filesChanged", { files: files.map(({ variable }) => variable).join(", ") });
    }
    lastReported = undefined;
  }

  function refuse({ message: reason }: ConfigError): void {
    if (reason !== lastReported) report("filesUnusable", { reason });
    lastReported = reason;
  }

  const { close } = repeat(
    () => look().catch(refuse),
    () => intervalMs,
    intervalMs,
  );
  return {
    /** What the newest version that can be used says. */
    get content(): Content {
      return content;
    },
    close,
  };
}

function readNow({ variable, path }: NamedFile): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unreadable(variable, error);
  }
}

async function readSoon({ variable, path }: NamedFile): Promise<string> {
  return readFile(path, "utf8").catch((error) => {
    throw unreadable(variable, error);
  });
}

function unreadable(variable: string, error: unknown): ConfigError {
  const { code, message } = error as NodeJS.ErrnoException;
  return new ConfigError(variable, `cannot be read (${code ?? message})`);
}

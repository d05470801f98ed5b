import { type NamedFile, reloadedFiles } from "../net/reloaded-files.ts";
import type { Report } from "../report.ts";

/** A file of keys. */
export interface KeyFile extends NamedFile {
  /** Hears of new versions, and of those that cannot be used: then the previous one stays in force. */
  readonly report: Report;
  /** How often the file is read, in milliseconds. Default: see `reloadedFiles`. */
  readonly intervalMs?: number | undefined;
}

/**
 * Reads a file of keys, and again when it changes.
 * @param parse throws an Error for a text that is not understood; its message must be safe to log
 * @throws ConfigError if the file's first version cannot be read or is wrong
 */
export function reloadedKeys<Content>(
  { report, intervalMs, ...file }: KeyFile,
  parse: (text: string) => Content,
  onChange?: (content: Content, before: Content) => void,
) {
  const { variable } = file;
  return reloadedFiles([file], ([text = ""]) => parse(text), {
    onChange(content, before) {
      onChange?.(content, before);
      report("keysReloaded", { variable });
    },
    onProblem: ({ message: reason }) => report("keysUnusable", { reason }),
    intervalMs,
  });
}

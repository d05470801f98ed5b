/** Where the edge writes its records; a pino logger is one. */
export interface Log {
  debug(record: object, message: string): void;
  info(record: object, message: string): void;
  warn(record: object, message: string): void;
  error(record: object, message: string): void;
}

/**
 * What a log may hold of an error that nobody expected: its kind and where it arose. Its message is
 * left out, since it may quote what the caller sent.
 */
export function unknownError(error: unknown): { name: string; code?: string; frames: string[] } {
  if (!(error instanceof Error)) return { name: typeof error, frames: [] };
  const frames = (error.stack ?? "").split("\n").filter((line) => /^ {4}at /.test(line));
  const { code } = error as { code?: unknown };
  return {
    name: error.name,
    ...(typeof code === "string" ? { code } : {}),
    frames: frames.map((line) => line.trim()),
  };
}

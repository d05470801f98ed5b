/** Result codes of SQLite that are handled separately (https://sqlite.org/rescode.html). */
export const sqliteCodes = { busy: 5, corrupt: 11, full: 13, notADatabase: 26 } as const;

/** The error's message. SQLite's messages contain no values. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A store cannot be used or made; the message says why, and what to do. */
export class StoreRefused extends Error {
  override readonly name = "StoreRefused";
  /** What the message is about: a file if not the directory. */
  readonly about: string;

  constructor(message: string, about = "DATA_DIR") {
    super(message);
    this.about = about;
  }
}

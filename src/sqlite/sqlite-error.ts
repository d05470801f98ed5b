/** Result codes of SQLite that are handled separately (https://sqlite.org/rescode.html). */
export const sqliteCodes = { busy: 5, corrupt: 11, full: 13, notADatabase: 26 } as const;

/** What went wrong, in SQLite's words; they hold no values. */
export function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

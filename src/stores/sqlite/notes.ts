import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./errors.ts";

/** A note on a database that matters before it is used. Its value is the time. */
export type Note =
  /** It is a backup, made at this time: it lacks what clients have seen since then. */
  | "copied"
  /** Everything in it was moved to Redis at this time. */
  | "moved";

export function addNote(database: DatabaseSync, note: Note): void {
  database
    .prepare("INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING")
    .run(note, new Date().toISOString());
}

/**
 * Applies the notes on a database before it is used. A restored backup gets new epochs: clients
 * with old cursors then start again instead of missing the lost events.
 * @throws StoreRefused for a database that was moved: the state in Redis has changed since
 */
export function heedNotes(database: DatabaseSync): void {
  const found = database.prepare("SELECT value FROM facts WHERE name = ?");
  const moved = found.get("moved" satisfies Note) as { value: string } | undefined;
  if (moved) {
    throw new StoreRefused(
      `was moved to Redis at ${moved.value}: set REDIS_URL instead, or take an empty directory`,
    );
  }
  if (!found.get("copied" satisfies Note)) return;
  database.exec(`
    BEGIN IMMEDIATE;
    UPDATE accounts SET epoch = lower(hex(randomblob(4)));
    DELETE FROM facts WHERE name = 'copied';
    COMMIT;
  `);
}

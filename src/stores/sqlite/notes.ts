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

/** @throws StoreRefused for a database that was moved: the state in Redis has changed since */
export function refuseMoved(database: DatabaseSync): void {
  const moved = timeOf(database, "moved");
  if (moved === undefined) return;
  throw new StoreRefused(
    `was moved to Redis at ${moved}: set REDIS_URL instead, or take an empty directory`,
  );
}

/**
 * Applies the notes on a database before it is used. A restored backup gets new epochs: clients
 * with old cursors then start again instead of missing the lost events.
 * @throws StoreRefused as `refuseMoved`
 */
export function heedNotes(database: DatabaseSync): void {
  refuseMoved(database);
  if (timeOf(database, "copied") === undefined) return;
  database.exec(`
    BEGIN IMMEDIATE;
    UPDATE accounts SET epoch = lower(hex(randomblob(4)));
    DELETE FROM facts WHERE name = 'copied';
    COMMIT;
  `);
}

function timeOf(database: DatabaseSync, note: Note): string | undefined {
  const found = database.prepare("SELECT value FROM facts WHERE name = ?").get(note);
  return (found as { value: string } | undefined)?.value;
}

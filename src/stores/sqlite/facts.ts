import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./errors.ts";

/** A fact about a database that matters before it is used. Its value is the time. */
export type Fact =
  /** It is a backup, made at this time: it lacks what clients have seen since then. */
  | "copied"
  /** Everything in it was moved to Redis at this time. */
  | "moved";

export function noteFact(database: DatabaseSync, fact: Fact): void {
  database
    .prepare("INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING")
    .run(fact, new Date().toISOString());
}

/**
 * Applies the facts of a database before it is used. A restored backup gets new epochs: clients
 * with old cursors then start again instead of missing the lost events.
 * @throws StoreRefused for a database that was moved: the state in Redis has changed since
 */
export function heedFacts(database: DatabaseSync): void {
  const found = database.prepare("SELECT value FROM facts WHERE name = ?");
  const moved = found.get("moved" satisfies Fact) as { value: string } | undefined;
  if (moved) {
    throw new StoreRefused(
      `was moved to Redis at ${moved.value}: set REDIS_URL instead, or take an empty directory`,
    );
  }
  if (!found.get("copied" satisfies Fact)) return;
  database.exec(`
    BEGIN IMMEDIATE;
    UPDATE accounts SET epoch = lower(hex(randomblob(4)));
    DELETE FROM facts WHERE name = 'copied';
    COMMIT;
  `);
}

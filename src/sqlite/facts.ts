import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./store-refused.ts";

/** What is to be known of a database before it is used. */
export type Fact =
  /** It is a copy, made at this time: what clients have seen since then is not in it. */
  | "copied"
  /** All of it was moved to Redis at this time. */
  | "moved";

export function noteFact(database: DatabaseSync, fact: Fact): void {
  database
    .prepare("INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING")
    .run(fact, new Date().toISOString());
}

/**
 * Makes a database fit to be gone on with. One that was restored is another log to those who hold
 * cursors: it gets another epoch, so that they start again instead of missing what was lost.
 * @throws StoreRefused for one that was moved: Redis has gone on since
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

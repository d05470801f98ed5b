import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./errors.ts";

/** Notes in the database that everything in it was moved to Redis now. */
export function markMoved(database: DatabaseSync): void {
  database
    .prepare("INSERT INTO facts (name, value) VALUES ('moved', ?) ON CONFLICT DO NOTHING")
    .run(new Date().toISOString());
}

/** @throws StoreRefused for a database that was moved: the state in Redis has changed since */
export function refuseMoved(database: DatabaseSync): void {
  const moved = database.prepare("SELECT value FROM facts WHERE name = 'moved'").get();
  if (moved === undefined) return;
  throw new StoreRefused(
    `was moved to Redis at ${moved.value}: set REDIS_URL instead, or take an empty directory`,
  );
}

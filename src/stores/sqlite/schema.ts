import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./errors.ts";

/** In the file's header: "PGW3". A file with tables but without it belongs to another program. */
const applicationId = 0x50_47_57_33;

/**
 * SQL that makes each version of the layout from the previous one. A released version never changes:
 * new ones are added at the end.
 */
export const migrations: readonly string[] = [
  // 1: records, the log of events, indexes
  `
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE probe (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    tail TEXT NOT NULL,  -- place of the last event ever appended
    floor TEXT NOT NULL,  -- place of the last event that was deleted
    instant INTEGER NOT NULL DEFAULT 0  -- the latest that a commit has asked for
  ) STRICT;
  CREATE TABLE records (
    account INTEGER NOT NULL,
    key TEXT NOT NULL,
    version TEXT NOT NULL,
    text TEXT NOT NULL,
    until_ms INTEGER NOT NULL,
    PRIMARY KEY (account, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX records_by_age ON records (until_ms);
  CREATE TABLE parts (
    account INTEGER NOT NULL,
    key TEXT NOT NULL,  -- of the record
    name TEXT NOT NULL,  -- of an attachment behind 'a:', or of a flag behind 'f:'
    value ANY NOT NULL,
    PRIMARY KEY (account, key, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE events (
    account INTEGER NOT NULL,
    place TEXT NOT NULL,  -- the cursor without its epoch
    topic TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (account, place)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_of_topic ON events (account, topic, place);
  CREATE TABLE members (
    account INTEGER NOT NULL,
    name TEXT NOT NULL,  -- of the index
    member TEXT NOT NULL,
    score REAL NOT NULL,
    PRIMARY KEY (account, member, name)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX members_by_score ON members (account, name, score);
  `,
];

/**
 * The version of the file's layout; 0 if it is empty.
 * @throws StoreRefused for a file of another program, or of a newer gateway, or that was moved to
 * Redis: the state there has changed since
 */
export function layoutOf(database: DatabaseSync, newest = migrations.length): number {
  const found = numberOf(database, "application_id");
  const version = numberOf(database, "user_version");
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as {
    tables: number;
  };
  if (found !== applicationId && (found !== 0 || tables > 0)) {
    throw new StoreRefused(
      "gateway.sqlite belongs to another program, or to a gateway that was never released: move the file away to start with an empty one",
    );
  }
  if (version > newest) {
    throw new StoreRefused(
      `gateway.sqlite has schema version ${version}, and this gateway knows ${newest} at most: start the newer gateway that wrote it`,
    );
  }
  const moved =
    version > 0 && database.prepare("SELECT value FROM facts WHERE name = 'moved'").get();
  if (!moved) return version;
  throw new StoreRefused(
    `was moved to Redis at ${moved.value}: set REDIS_URL instead, or take an empty directory`,
  );
}

/** Notes in the database that everything in it was moved to Redis now. */
export function markMoved(database: DatabaseSync): void {
  database
    .prepare("INSERT INTO facts (name, value) VALUES ('moved', ?) ON CONFLICT DO NOTHING")
    .run(new Date().toISOString());
}

/**
 * Brings the file to the newest version of the schema, in one transaction.
 * @throws StoreRefused as `layoutOf`
 */
export function migrate(database: DatabaseSync, to: readonly string[] = migrations): void {
  const version = layoutOf(database, to.length);
  if (version === to.length) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    for (const step of to.slice(version)) database.exec(step);
    database.exec(`PRAGMA application_id = ${applicationId}`);
    database.exec(`PRAGMA user_version = ${to.length}`);
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function numberOf(database: DatabaseSync, pragma: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0);
}

import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./store-refused.ts";

/** In the file's header: "PGW1". A file with tables but without it belongs to another program. */
export const applicationId = 0x50_47_57_31;

/**
 * SQL that makes each version of the schema from the previous one. A released version never
 * changes: new ones are added at the end.
 */
export const migrations: readonly string[] = [
  // 1: the event log
  `
  CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
  CREATE TABLE probe (id INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    epoch TEXT NOT NULL,
    tail TEXT NOT NULL,  -- place of the last event ever appended
    floor TEXT NOT NULL  -- place of the last event that was deleted
  ) STRICT;
  CREATE TABLE events (
    account INTEGER NOT NULL,
    place TEXT NOT NULL,  -- the cursor without its epoch
    kind INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (account, place)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX events_of_subject ON events (account, kind, external_id, place);
  CREATE TABLE subjects (
    account INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    last TEXT NOT NULL,  -- place of its last event
    touched_ms INTEGER NOT NULL,
    PRIMARY KEY (account, kind, external_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX subjects_by_age ON subjects (touched_ms);
  CREATE TABLE states (
    account INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    state_key TEXT NOT NULL,
    state TEXT NOT NULL,  -- JSON
    bytes BLOB NOT NULL,  -- the event that set it, which it outlives
    PRIMARY KEY (account, kind, external_id, state_key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE seen (
    account INTEGER NOT NULL,
    what TEXT NOT NULL,  -- an identity, or a digest behind "body "
    teller TEXT NOT NULL,  -- c: a callback, o: any other source
    seen_ms INTEGER NOT NULL,
    PRIMARY KEY (account, what)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX seen_by_age ON seen (seen_ms);
  CREATE TABLE unfinished (
    id INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    member TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    UNIQUE (account, member)
  ) STRICT;
  CREATE INDEX unfinished_by_age ON unfinished (account, since_ms, id);
  CREATE TABLE dead_letters (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    account INTEGER NOT NULL,
    id TEXT NOT NULL,
    kind INTEGER NOT NULL,
    body BLOB NOT NULL,  -- sealed
    reason TEXT NOT NULL,
    received_ms INTEGER NOT NULL,
    UNIQUE (account, id)
  ) STRICT;
  `,

  // 2: calls that move money, and the uses of Idempotency-Key
  `
  CREATE TABLE intents (
    place INTEGER PRIMARY KEY,  -- in the order in which they began
    account TEXT NOT NULL,
    id TEXT NOT NULL,
    started_ms INTEGER NOT NULL,
    due_ms INTEGER,  -- NULL: given up
    intent TEXT NOT NULL,  -- JSON
    UNIQUE (account, id)
  ) STRICT;
  CREATE INDEX intents_by_age ON intents (started_ms);
  CREATE TABLE intent_subjects (
    account TEXT NOT NULL,
    kind INTEGER NOT NULL,
    external_id TEXT NOT NULL,
    touched_ms INTEGER NOT NULL,
    locks TEXT NOT NULL,  -- JSON
    answered TEXT NOT NULL,  -- JSON
    PRIMARY KEY (account, kind, external_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX intent_subjects_by_age ON intent_subjects (touched_ms);
  CREATE TABLE idempotency_keys (
    account TEXT NOT NULL,
    digest TEXT NOT NULL,
    since_ms INTEGER NOT NULL,
    used TEXT NOT NULL,  -- JSON, without the answer
    answer BLOB,  -- sealed
    PRIMARY KEY (account, digest)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX idempotency_keys_by_age ON idempotency_keys (since_ms);
  `,

  // 3: the state of the external_id with each event, and what it follows from with the external_id
  `
  ALTER TABLE events ADD COLUMN state INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE subjects ADD COLUMN facts TEXT NOT NULL DEFAULT '[]';  -- JSON
  ALTER TABLE subjects ADD COLUMN holds TEXT NOT NULL DEFAULT '[]';  -- JSON
  ALTER TABLE subjects ADD COLUMN folded INTEGER NOT NULL DEFAULT 0;
  `,
];

/**
 * Brings the file to the newest version of the schema, in one transaction.
 * @throws StoreRefused for a file of another program, or of a newer gateway
 */
export function migrate(database: DatabaseSync, to: readonly string[] = migrations): void {
  const found = numberOf(database, "application_id");
  const version = numberOf(database, "user_version");
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as {
    tables: number;
  };
  if (found !== applicationId && (found !== 0 || tables > 0)) {
    throw new StoreRefused("gateway.sqlite belongs to another program");
  }
  if (version > to.length) {
    throw new StoreRefused(
      `gateway.sqlite has schema version ${version}, and this gateway knows ${to.length} at most: start the newer gateway that wrote it`,
    );
  }
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

/** The value of a pragma that is a number. */
export function numberOf(database: DatabaseSync, pragma: string): number {
  return Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0] ?? 0);
}

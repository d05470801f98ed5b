import type { DatabaseSync } from "node:sqlite";
import { StoreRefused } from "./errors.ts";

/** In the file's header: "PGW2". A file with tables but without it belongs to another program. */
const applicationId = 0x50_47_57_32;

/** "PGW1": the header of a layout that was never released. */
const formerId = 0x50_47_57_31;

/**
 * SQL that makes each version of the layout from the previous one. A released version never changes:
 * new ones are added at the end.
 */
export const migrations: readonly string[] = [
  // 1: records, the log of events, indexes, dead letters
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
  CREATE TABLE attachments (
    account INTEGER NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (account, key, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE flags (
    account INTEGER NOT NULL,
    key TEXT NOT NULL,
    name TEXT NOT NULL,
    value TEXT NOT NULL,
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
  // 2: dead letters are records (ledger/dead-letters.ts), kept for a hundred years
  `
  INSERT INTO records (account, key, version, text, until_ms)
    SELECT account, 'letter:' || id, 'letter' || place,
      json_object('id', id, 'kind', kind, 'reason', reason, 'receivedAtMs', received_ms,
        'bytes', length(body), 'place', CAST(place AS TEXT)), received_ms + 3153600000000
    FROM dead_letters;
  INSERT INTO attachments (account, key, name, bytes)
    SELECT account, 'letter:' || id, 'body', body FROM dead_letters;
  INSERT INTO members (account, name, member, score)
    SELECT account, 'letters', 'letter:' || id, place FROM dead_letters;
  INSERT INTO records (account, key, version, text, until_ms)
    SELECT account, 'letters', 'letters',
      json_object('letters', count(*), 'bytes', sum(length(body))),
      max(received_ms) + 3153600000000
    FROM dead_letters GROUP BY account;
  DROP TABLE dead_letters;
  `,
  // 3: what a record knows of an operation is one object (ledger/record.ts), not one and a list
  `
  UPDATE records SET text = json_set(json_remove(text, '$.facts', '$.states'), '$.operations', json((
    SELECT json_group_array(json(operation)) FROM (
      SELECT json_patch('{}', json_object(
          'n', was.value ->> 'n', 'since', was.value ->> 'since', 'place', was.value ->> 'place',
          'subjectId', was.value ->> 'key' ->> 0, 'operation', was.value ->> 'key' ->> 1,
          'operationId', was.value ->> 'operationId',
          'isAttempt', json(iif(fact.value ->> 3 <> was.value ->> 'operationId', 'true', NULL)),
          'rank', was.value ->> 'rank', 'status', was.value ->> 'status',
          'statusCode', nullif(fact.value ->> 4, ''), 'amount', nullif(fact.value ->> 5, ''),
          'currency', nullif(fact.value ->> 6, ''),
          'held', json(CASE fact.value ->> 7 WHEN '1' THEN 'true' WHEN '0' THEN 'false' END),
          'at', fact.value ->> 8, 'words', json(nullif(fact.value ->> 9, '')))) AS operation
        FROM json_each(text, '$.facts') AS fact
        JOIN json_each(text, '$.states') AS was ON was.value ->> 'key' = fact.value ->> 0
        ORDER BY fact.key))))
    WHERE json_type(text, '$.facts') = 'array';
  `,
  // 4: what is pending has an open call (ledger/calls.ts) from the first, not once it is looked up
  `
  CREATE TEMP TABLE pending AS
    SELECT account, iif(member ->> 0 = 1, 'payment:', 'payout:') || (member ->> 1) AS key,
      'pending-' || lower(hex(randomblob(16))) AS id, member ->> 2 AS subject, score,
      CASE member ->> 3 WHEN 'payment' THEN 'CreatePayment' WHEN 'confirm' THEN 'ConfirmPayment'
        WHEN 'recurrent' THEN 'CreateRecurrentPayment' ELSE 'RequestPayout' END AS method
    FROM members WHERE name = 'unfinished';
  DELETE FROM pending WHERE EXISTS (
    SELECT 1 FROM records, json_each(records.text, '$.calls') AS call
    WHERE records.account = pending.account AND records.key = pending.key
      AND call.value ->> 'method' = method AND call.value ->> 'subjectId' = subject);
  UPDATE records SET text = json_set(text, '$.calls', json((
    SELECT json_group_array(json(call)) FROM (
      SELECT value AS call FROM json_each(text, '$.calls')
      UNION ALL
      SELECT json_object('id', id, 'method', method, 'state', 'pending',
          'startedAt', CAST(CAST(score AS INTEGER) AS TEXT), 'leaseMs', 0, 'locks', json('false'),
          'subjectId', subject, 'checks', 0, 'notFound', 0, 'needsOperator', json('false'),
          'keyDigest', '', 'dueMs', CAST(score AS INTEGER))
        FROM pending WHERE pending.account = records.account AND pending.key = records.key))))
    WHERE (account, key) IN (SELECT account, key FROM pending);
  INSERT INTO members (account, name, member, score)
    SELECT account, 'due', id || ' ' || key, score FROM pending;
  DELETE FROM members WHERE name = 'unfinished';
  DROP TABLE pending;
  `,
];

/**
 * The version of the file's layout; 0 if it is empty.
 * @throws StoreRefused for a file of another program, or of a newer gateway
 */
export function layoutOf(database: DatabaseSync, newest = migrations.length): number {
  const found = numberOf(database, "application_id");
  const version = numberOf(database, "user_version");
  const { tables } = database.prepare("SELECT count(*) AS tables FROM sqlite_schema").get() as {
    tables: number;
  };
  if (found === formerId) {
    throw new StoreRefused(
      "gateway.sqlite has the layout of an unreleased gateway, which cannot be read: move the file away to start with an empty one",
    );
  }
  if (found !== applicationId && (found !== 0 || tables > 0)) {
    throw new StoreRefused("gateway.sqlite belongs to another program");
  }
  if (version > newest) {
    throw new StoreRefused(
      `gateway.sqlite has schema version ${version}, and this gateway knows ${newest} at most: start the newer gateway that wrote it`,
    );
  }
  return version;
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

import type { DatabaseSync } from "node:sqlite";
import type { Kind } from "../../model/kinds.ts";
import { boundLimit } from "../../sqlite/limit.ts";
import type { RoomOperations } from "../../sqlite/room.ts";
import type { UsedKey } from "../memory/keys.ts";
import type { KeptSubject } from "../memory/store.ts";
import type { Intent } from "../store.ts";
import type { Ages, IntentRow, KeyRow, Rows, SubjectRow } from "./rows.ts";

/** The operations on the tables of intents, locks and keys, run inside the store's thread. */
export function open(database: DatabaseSync): RoomOperations {
  const make = (text: string) => database.prepare(text);
  const page = `${boundLimit} OFFSET ?`;
  const sql = {
    intent: make(
      `INSERT INTO intents (account, id, started_ms, due_ms, intent) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET due_ms = excluded.due_ms, intent = excluded.intent`,
    ),
    noIntent: make("DELETE FROM intents WHERE account = ? AND id = ?"),
    intents: make(`SELECT account, id, due_ms, intent FROM intents ORDER BY place ${page}`),
    oldIntents: make("DELETE FROM intents WHERE started_ms <= ?"),
    subject: make(
      `INSERT INTO intent_subjects (account, kind, external_id, touched_ms, locks, answered)
       VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET touched_ms = excluded.touched_ms, locks = excluded.locks,
         answered = excluded.answered`,
    ),
    noSubject: make(
      "DELETE FROM intent_subjects WHERE account = ? AND kind = ? AND external_id = ?",
    ),
    subjects: make(
      `SELECT account, kind, external_id, touched_ms, locks, answered FROM intent_subjects
       ORDER BY touched_ms, account, kind, external_id ${page}`,
    ),
    oldSubjects: make("DELETE FROM intent_subjects WHERE touched_ms <= ?"),
    key: make(
      `INSERT INTO idempotency_keys (account, digest, since_ms, used, answer)
       VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET since_ms = excluded.since_ms, used = excluded.used,
         answer = excluded.answer`,
    ),
    noKey: make("DELETE FROM idempotency_keys WHERE account = ? AND digest = ?"),
    keys: make(
      `SELECT account, digest, used, answer FROM idempotency_keys
       ORDER BY since_ms, account, digest ${page}`,
    ),
    oldKeys: make("DELETE FROM idempotency_keys WHERE since_ms <= ?"),
  };

  function saveIntent({ account, id, kept }: IntentRow): void {
    if (!kept) return void sql.noIntent.run(account, id);
    const { intent, dueMs } = kept;
    const due = Number.isFinite(dueMs) ? Math.ceil(dueMs) : null;
    sql.intent.run(account, id, Math.floor(intent.startedAtMs), due, JSON.stringify(intent));
  }

  function saveSubject({ account, kind, externalId, kept }: SubjectRow): void {
    if (!kept) return void sql.noSubject.run(account, kind, externalId);
    const { touchedMs, locks, answered } = kept;
    const [locksText, answeredText] = [JSON.stringify(locks), JSON.stringify(answered)];
    sql.subject.run(account, kind, externalId, touchedMs, locksText, answeredText);
  }

  function saveKey({ account, digest, kept }: KeyRow): void {
    if (!kept) return void sql.noKey.run(account, digest);
    const { outcome, ...used } = kept;
    const answer = typeof outcome === "string" ? null : outcome;
    const text = JSON.stringify(answer ? used : { ...used, outcome });
    sql.key.run(account, digest, used.sinceMs, text, answer);
  }

  const load: { [K in keyof Rows]: (limit: number, offset: number) => Rows[K] } = {
    intents: (limit, offset) =>
      rowsOf<StoredIntent>(sql.intents.all(limit, offset)).map((row) => ({
        account: row.account,
        id: row.id,
        kept: { intent: JSON.parse(row.intent) as Intent, dueMs: row.due_ms ?? Infinity },
      })),
    subjects: (limit, offset) =>
      rowsOf<StoredSubject>(sql.subjects.all(limit, offset)).map((row) => ({
        account: row.account,
        kind: row.kind,
        externalId: row.external_id,
        kept: {
          locks: JSON.parse(row.locks) as KeptSubject["locks"],
          answered: JSON.parse(row.answered) as string[],
          touchedMs: row.touched_ms,
        },
      })),
    keys: (limit, offset) =>
      rowsOf<StoredKey>(sql.keys.all(limit, offset)).map(({ account, digest, used, answer }) => ({
        account,
        digest,
        kept: { ...(JSON.parse(used) as UsedKey), ...(answer && { outcome: answer }) },
      })),
  };

  return {
    writes: {
      save({ intents, subjects, keys }: Rows): void {
        for (const row of intents) saveIntent(row);
        for (const row of subjects) saveSubject(row);
        for (const row of keys) saveKey(row);
      },

      sweep({ intentsMs, keysMs }: Ages): void {
        sql.oldIntents.run(intentsMs);
        sql.oldSubjects.run(intentsMs);
        sql.oldKeys.run(keysMs);
      },
    },

    reads: {
      /** Up to `limit` rows from `offset` on, in the order in which they must be restored. */
      load: (what: keyof Rows, offset: number, limit: number): Rows => ({
        ...{ intents: [], subjects: [], keys: [] },
        [what]: load[what](limit, offset),
      }),
    },
  };
}

function rowsOf<T>(rows: unknown): T[] {
  return rows as T[];
}

interface StoredIntent {
  readonly account: string;
  readonly id: string;
  readonly due_ms: number | null;
  readonly intent: string;
}

interface StoredSubject {
  readonly account: string;
  readonly kind: Kind;
  readonly external_id: string;
  readonly touched_ms: number;
  readonly locks: string;
  readonly answered: string;
}

interface StoredKey {
  readonly account: string;
  readonly digest: string;
  readonly used: string;
  readonly answer: Buffer | null;
}

import type { DatabaseSync } from "node:sqlite";

/** All that the embedded store has of an account, for import into another store. */
export interface StoredAccount {
  readonly name: string;
  readonly epoch: string;
  /** Places of the last event ever appended, and of the last one that was deleted. */
  readonly tail: string;
  readonly floor: string;
  /** The latest instant of a commit; see IndexChange. */
  readonly instant: number;
  events(): Iterable<EventRow & { readonly topic: string }>;
  records(): Iterable<RecordRow>;
  members(): Iterable<{ readonly index: string; readonly member: string; readonly score: number }>;
}

/** A place is a cursor without its epoch. */
export interface EventRow {
  readonly place: string;
  readonly bytes: Uint8Array;
}

export interface RecordRow {
  readonly key: string;
  readonly version: string;
  readonly text: string;
  readonly untilMs: number;
  readonly attachments: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly flags: readonly { readonly name: string; readonly value: string }[];
}

export function storedAccounts(database: DatabaseSync): StoredAccount[] {
  const all = <T>(text: string, ...values: (string | number)[]) =>
    database.prepare(text).iterate(...values) as unknown as Iterable<T>;
  const accounts = all<Omit<StoredAccount, "events" | "records" | "members"> & { id: number }>(
    "SELECT id, name, epoch, tail, floor, instant FROM accounts ORDER BY name",
  );
  return [...accounts].map(({ id, ...account }) => ({
    ...account,
    events: () =>
      all("SELECT place, topic, bytes FROM events WHERE account = ? ORDER BY place", id),

    *records() {
      const rows = all<Omit<RecordRow, "attachments" | "flags">>(
        "SELECT key, version, text, until_ms AS untilMs FROM records WHERE account = ?",
        id,
      );
      const parts = "WHERE account = ? AND key = ?";
      for (const record of rows) {
        const attachments = all(`SELECT name, bytes FROM attachments ${parts}`, id, record.key);
        const flags = all(`SELECT name, value FROM flags ${parts}`, id, record.key);
        yield { ...record, attachments: [...attachments], flags: [...flags] } as RecordRow;
      }
    },

    members: () =>
      all(
        'SELECT name AS "index", member, score FROM members WHERE account = ? ORDER BY score',
        id,
      ),
  }));
}

import type { DatabaseSync } from "node:sqlite";
import type { AccountRow, EventRow, RecordRow } from "./operations.ts";

/** All that the embedded store has of an account, for import into another store. */
export type StoredAccount = ReturnType<typeof storedAccounts>[number];

/** An attachment or a flag, as the table `parts` names it. */
interface Part {
  readonly name: string;
  readonly value: string | Uint8Array;
}

export function storedAccounts(database: DatabaseSync) {
  const all = <Row>(text: string, ...values: (string | number)[]) =>
    database.prepare(text).iterate(...values) as unknown as Iterable<Row>;
  const accounts = all<AccountRow & { readonly name: string }>(
    "SELECT id, name, epoch, tail, floor, instant FROM accounts ORDER BY name",
  );
  return [...accounts].map(({ id, ...account }) => ({
    ...account,
    events: () =>
      all<EventRow & { readonly topic: string }>(
        "SELECT place, topic, bytes FROM events WHERE account = ? ORDER BY place",
        id,
      ),

    *records() {
      const rows = all<RecordRow & { readonly key: string }>(
        "SELECT key, version, text, until_ms FROM records WHERE account = ?",
        id,
      );
      for (const record of rows) {
        const parts = "SELECT name, value FROM parts WHERE account = ? AND key = ?";
        yield { ...record, parts: [...all<Part>(parts, id, record.key)] };
      }
    },

    members: () =>
      all<{ readonly index: string; readonly member: string; readonly score: number }>(
        'SELECT name AS "index", member, score FROM members WHERE account = ? ORDER BY score',
        id,
      ),
  }));
}

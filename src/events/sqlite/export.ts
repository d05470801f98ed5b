import type { DatabaseSync } from "node:sqlite";
import type { Kind } from "../../model/kinds.ts";
import type { EventRow, LetterRow, StateFacts, UnfinishedRow } from "./rows.ts";

/** All that the embedded store has of an account's log, for import into another store. */
export interface StoredAccount {
  readonly name: string;
  readonly epoch: string;
  /** Places of the last event ever appended, and of the last one that was deleted. */
  readonly tail: string;
  readonly floor: string;
  events(): Iterable<StoredEventRow>;
  subjects(): Iterable<StoredSubject>;
  seen(): Iterable<SeenRow>;
  unfinished(): Iterable<UnfinishedRow>;
  letters(): Iterable<LetterRow>;
}

export interface StoredEventRow extends EventRow {
  readonly kind: Kind;
  readonly externalId: string;
}

export interface StoredSubject {
  readonly kind: Kind;
  readonly externalId: string;
  /** Place of its last event; empty while only a hold is noted. */
  readonly last: string;
  readonly touchedMs: number;
  /** JSON; see StoredFact. */
  readonly known: string;
  /** JSON; see Kept. */
  readonly holds: string;
  readonly folded: number;
  readonly states: readonly {
    readonly key: string;
    readonly facts: StateFacts;
    readonly bytes: Uint8Array;
  }[];
}

/** How a repeat is recognised: by an identity, or by the digest of a body. */
export interface SeenRow {
  readonly digest: string;
  readonly of: "identity" | "body";
  readonly teller: "c" | "o";
  readonly seenMs: number;
}

export function storedAccounts(database: DatabaseSync): StoredAccount[] {
  const all = <T>(text: string, ...values: (string | number)[]) =>
    database.prepare(text).iterate(...values) as unknown as Iterable<T>;
  const accounts = all<{ id: number; name: string; epoch: string; tail: string; floor: string }>(
    "SELECT id, name, epoch, tail, floor FROM accounts ORDER BY name",
  );
  return [...accounts].map(({ id, ...account }) => ({
    ...account,

    events: () =>
      all(
        `SELECT place, kind, external_id AS externalId, bytes, state FROM events
         WHERE account = ? ORDER BY place`,
        id,
      ),

    *subjects() {
      const rows = all<Omit<StoredSubject, "states">>(
        `SELECT kind, external_id AS externalId, last, touched_ms AS touchedMs, facts AS known, holds,
           folded FROM subjects
         WHERE account = ?`,
        id,
      );
      for (const subject of rows) {
        const { kind, externalId } = subject;
        const states = all<{ key: string; state: string; bytes: Uint8Array }>(
          `SELECT state_key AS key, state, bytes FROM states
           WHERE account = ? AND kind = ? AND external_id = ?`,
          ...[id, kind, externalId],
        );
        yield {
          ...subject,
          states: [...states].map(({ key, state, bytes }) => ({
            key,
            facts: JSON.parse(state) as StateFacts,
            bytes,
          })),
        };
      }
    },

    *seen() {
      const rows = all<{ what: string; teller: "c" | "o"; seenMs: number }>(
        "SELECT what, teller, seen_ms AS seenMs FROM seen WHERE account = ?",
        id,
      );
      for (const { what, ...row } of rows) {
        const body = /^body (.*)$/s.exec(what)?.[1];
        yield body === undefined
          ? { ...row, of: "identity", digest: what }
          : { ...row, of: "body", digest: body };
      }
    },

    unfinished: () =>
      all(
        "SELECT member, since_ms AS sinceMs FROM unfinished WHERE account = ? ORDER BY since_ms, id",
        id,
      ),

    letters: () =>
      all(
        `SELECT place, id, kind, reason, received_ms AS receivedMs, body FROM dead_letters
         WHERE account = ? ORDER BY place`,
        id,
      ),
  }));
}

import type { DatabaseSync } from "node:sqlite";
import { EventKind } from "../../gen/payments/v1/event_pb.ts";
import type { Kind } from "../../model/kinds.ts";
import { boundLimit } from "../../sqlite/limit.ts";
import type { RoomOperations } from "../../sqlite/room.ts";
import { beginning, nextPlace, placeOf } from "../cursor.ts";
import {
  factsOfStates,
  foldIn,
  type Kept,
  noteWords,
  readFacts,
  type StoredFact,
  takeHold,
  withHold,
} from "../facts.ts";
import { merge, stateKey } from "../merge.ts";
import { stateAfter } from "../payment-state.ts";
import { maxUnfinished, memberOf } from "../unfinished.ts";
import type {
  AppendedRow,
  EventRow,
  LetterRow,
  NewRow,
  PageOf,
  PageRow,
  SnapshotRow,
  StateFacts,
  SubjectRow,
  UnfinishedRow,
} from "./rows.ts";

/** Most events scanned for one page of an account: a rare kind must not block other calls. */
const maxScan = 4_096;
/** Sorts after every place, since places are hex digits. */
const behindAll = "~";

/** Most rows of a table that one sweep deletes: writes wait for it. */
const sweepSize = 1_000;

/** The event log's operations, inside the store's thread. */
export function open(database: DatabaseSync): RoomOperations {
  const sql = statementsOf(database);

  /** Events at or before this place are no longer kept. */
  function floorOf(account: number, oldest: string): string {
    const expired = sql.lastBefore.get(account, oldest) as { place: string } | undefined;
    return expired?.place ?? accountRow(account).floor;
  }

  function accountRow(account: number): { tail: string; floor: string } {
    return sql.account.get(account) as { tail: string; floor: string };
  }

  function isDuplicate({ account, isCallback, identity, digest, ...row }: NewRow, late: boolean) {
    const sourceOf = (what: string) =>
      (sql.seen.get(account, what, row.nowMs - row.retentionMs) as { teller: string } | undefined)
        ?.teller;
    const source = sourceOf(identity);
    if (!isCallback) return late || source !== undefined;
    return source === "c" || (digest !== undefined && sourceOf(bodyOf(digest)) !== undefined);
  }

  function remember({ account, isCallback, identity, digest, nowMs, retentionMs }: NewRow): void {
    if (!isCallback) {
      sql.seeOnce.run(account, identity, nowMs, nowMs - retentionMs);
      return;
    }
    sql.see.run(account, identity, nowMs);
    if (digest !== undefined) sql.see.run(account, bodyOf(digest), nowMs);
  }

  function noteUnfinished(row: NewRow): void {
    const member = memberOf(row);
    if (member === undefined) return;
    if (row.rank === 2) {
      sql.finish.run(row.account, member);
      return;
    }
    sql.forgetUnfinished.run(row.account, member, row.nowMs - 2 * row.retentionMs);
    if (sql.begin.run(row.account, member, row.nowMs).changes === 0) return;
    const { many } = sql.countUnfinished.get(row.account) as { many: number };
    if (many > maxUnfinished) sql.forgetOldest.run(row.account);
  }

  return {
    reads: {
      bounds: (account: number, oldest: string) => ({
        floor: floorOf(account, oldest),
        tail: accountRow(account).tail,
      }),

      page(of: PageOf): PageRow {
        const { account, subject, kinds, limit } = of;
        const bounds = { floor: floorOf(account, of.oldest), tail: accountRow(account).tail };
        const after = of.after !== undefined && of.after > bounds.floor ? of.after : bounds.floor;
        const rows = subject
          ? sql.ofSubject.iterate(account, subject.kind, subject.externalId, after, limit + 1)
          : sql.ofAll.iterate(account, after, maxScan + 1);
        const events: EventRow[] = [];
        let scanned = 0;
        let last = after;
        for (const { kind, ...row } of rows as Iterable<EventRow & { kind: Kind }>) {
          if (events.length === limit || scanned === maxScan) {
            return { events, upTo: last, bounds };
          }
          scanned++;
          last = row.place;
          if (kinds.length === 0 || kinds.includes(kind)) events.push(row);
        }
        return { events, upTo: bounds.tail, bounds };
      },

      snapshot(of: SubjectRow, sinceMs: number): SnapshotRow | undefined {
        const { account, kind, externalId } = of;
        const known = sql.subject.get(account, kind, externalId) as Known | undefined;
        if (!known || known.touched_ms < sinceMs || known.last === "") return undefined;
        const rows = sql.states.all(account, kind, externalId) as unknown as StoredState[];
        const states = rows
          .map(({ state, bytes }) => ({ facts: JSON.parse(state) as StateFacts, bytes }))
          .sort((a, b) => (a.facts.place < b.facts.place ? -1 : 1));
        const { facts, holds, folded } = keptOf(known, () => states.map((state) => state.facts));
        return { states, last: known.last, facts, held: holds.length > 0, folded };
      },

      history(
        { account, kind, externalId }: SubjectRow,
        oldest: string,
        limit: number,
        before = behindAll,
      ) {
        const floor = floorOf(account, oldest);
        return sql.newestOfSubject
          .all(account, kind, externalId, floor, before, Math.max(limit, 0))
          .reverse();
      },

      placeBefore(account: number, oldest: string, count: number): string {
        const floor = floorOf(account, oldest);
        const found = sql.nthNewest.get(account, floor, Math.max(count, 0));
        return (found as { place: string } | undefined)?.place ?? floor;
      },

      unfinished: (account: number, sinceMs: number, untilMs: number, limit: number) =>
        sql.unfinished.all(account, sinceMs, untilMs, limit) as unknown as UnfinishedRow[],

      letters(account: number, behind: number | undefined, newestFirst: boolean, limit: number) {
        if (newestFirst) return sql.lettersBefore.all(account, behind ?? Number.MAX_VALUE, limit);
        return sql.lettersBehind.all(account, behind ?? -1, limit);
      },

      letter: (account: number, id: string) => sql.letter.get(account, id),
      countLetters: (account: number) => (sql.countLetters.get(account) as { many: number }).many,
    },

    writes: {
      /** Returns the account's row, added if it is missing. */
      account(name: string, epoch: string): { id: number; epoch: string } {
        const first = placeOf(beginning);
        sql.makeAccount.run(name, epoch, first, first);
        return sql.accountOf.get(name) as { id: number; epoch: string };
      },

      append(row: NewRow): AppendedRow {
        const { account, kind, externalId, nowMs } = row;
        const key = stateKey(row);
        const known = sql.subject.get(account, kind, externalId) as Known | undefined;
        const isOld = known !== undefined && known.touched_ms < nowMs - 2 * row.retentionMs;
        if (isOld) {
          sql.forgetStates.run(account, kind, externalId);
          sql.forgetSubject.run(account, kind, externalId);
        }
        const stored = sql.state.get(account, kind, externalId, key) as StoredState | undefined;
        const held = stored && (JSON.parse(stored.state) as StateFacts);
        const { replaces, late, conflict } = merge(held, row);
        const kept = keptOf(isOld ? undefined : known, () =>
          (sql.states.all(account, kind, externalId) as unknown as StoredState[]).map(
            (one) => JSON.parse(one.state) as StateFacts,
          ),
        );
        const changesHold = takeHold(kept, row.fact, row.call);
        if (isDuplicate(row, late) && !changesHold) {
          const { facts, holds } = kept;
          const texts = [JSON.stringify(facts), JSON.stringify(holds)];
          sql.keep.run(...texts, account, kind, externalId);
          return { outcome: "duplicate", place: "", state: 0, conflict: false };
        }

        const place = nextPlace(accountRow(account).tail, nowMs);
        const gone = replaces ? foldIn(kept, row.fact) : [];
        if (!replaces) noteWords(kept, row.fact);
        const { facts, holds } = kept;
        const folded = kept.folded + gone.length;
        const state = stateAfter(kind, readFacts(facts, { held: holds.length > 0, folded }));
        sql.store.run(account, place, kind, externalId, row.bytes, state);
        sql.moveTail.run(place, account);
        const texts = [JSON.stringify(facts), JSON.stringify(holds)];
        sql.touch.run(account, kind, externalId, place, nowMs, ...texts, folded);
        for (const oneKey of gone) sql.forgetState.run(account, kind, externalId, oneKey);
        remember(row);
        if (replaces) {
          const { subjectId, operation, operationId, rank, status } = row;
          const since = held?.since ?? place;
          const facts: StateFacts = {
            ...{ subjectId, operation, operationId, rank, status },
            ...{ since, place },
          };
          sql.setState.run(account, kind, externalId, key, JSON.stringify(facts), row.bytes);
          noteUnfinished(row);
        }
        return { outcome: "stored", place, state, conflict };
      },

      noteHold(
        account: number,
        externalId: string,
        call: string,
        isHolding: boolean,
        nowMs: number,
        sinceMs: number,
      ): void {
        const found = sql.subject.get(account, EventKind.PAYMENT, externalId) as Known | undefined;
        const isOld = found !== undefined && found.touched_ms < sinceMs;
        if (isOld) {
          sql.forgetStates.run(account, EventKind.PAYMENT, externalId);
          sql.forgetSubject.run(account, EventKind.PAYMENT, externalId);
        }
        const { holds } = keptOf(isOld ? undefined : found, () => []);
        const text = JSON.stringify(withHold(holds, call, isHolding));
        sql.hold.run(account, EventKind.PAYMENT, externalId, nowMs, text);
      },

      dismiss(account: number, members: readonly string[]): void {
        for (const member of members) sql.finish.run(account, member);
      },

      /** @returns false when the account's share is full */
      addDeadLetter(account: number, letter: Omit<LetterRow, "place">, max: LettersBound): boolean {
        const { id, kind, body, reason, receivedMs } = letter;
        if (sql.letter.get(account, id)) return true;
        const { many, size } = sql.countLetters.get(account) as { many: number; size: number };
        if (many >= max.letters || size + body.length > max.bytes) return false;
        sql.addDeadLetter.run(account, id, kind, body, reason, receivedMs);
        return true;
      },

      removeDeadLetter: (account: number, id: string) =>
        sql.removeDeadLetter.run(account, id).changes > 0,

      /** Deletes some of the expired rows. @returns whether there may be more */
      sweep(nowMs: number, retentionMs: number): boolean {
        const oldest = placeOf({ ms: Math.max(nowMs - retentionMs, 0), seq: 0 });
        let more = false;
        for (const { id } of sql.accounts.all() as unknown as { id: number }[]) {
          const expired = sql.expired.all(id, oldest, sweepSize) as unknown as { place: string }[];
          const last = expired.at(-1)?.place;
          if (last === undefined) continue;
          sql.deleteEvents.run(id, last);
          sql.moveFloor.run(last, id);
          more ||= expired.length === sweepSize;
        }
        more ||= sql.sweepSeen.run(nowMs - retentionMs, sweepSize).changes === sweepSize;
        const gone = sql.oldSubjects.all(nowMs - 2 * retentionMs, sweepSize);
        for (const { account, kind, external_id } of gone as unknown as SubjectKey[]) {
          sql.forgetStates.run(account, kind, external_id);
          sql.forgetSubject.run(account, kind, external_id);
        }
        more ||= gone.length === sweepSize;
        more ||= sql.sweepUnfinished.run(nowMs - 2 * retentionMs, sweepSize).changes === sweepSize;
        return more;
      },
    },
  };
}

/** Most dead letters of an account, and most bytes of their bodies together. */
export interface LettersBound {
  readonly letters: number;
  readonly bytes: number;
}

interface Known {
  /** Empty while only a hold is noted. */
  readonly last: string;
  readonly touched_ms: number;
  /** JSON. */
  readonly facts: string;
  readonly holds: string;
  readonly folded: number;
}

/** @param states used if no facts are stored, as in a file of an older version */
function keptOf(known: Known | undefined, states: () => StateFacts[]): Kept {
  if (!known) return { facts: [], holds: [], folded: 0 };
  const stored = JSON.parse(known.facts) as StoredFact[];
  const facts = stored.length > 0 ? stored : factsOfStates(states().map(placed));
  return { facts, holds: JSON.parse(known.holds) as string[], folded: known.folded };
}

function placed({ place, ...facts }: StateFacts) {
  return { ...facts, atMs: Number.parseInt(place.slice(0, 12), 16) };
}

interface StoredState {
  readonly state: string;
  readonly bytes: Uint8Array;
}

interface SubjectKey {
  readonly account: number;
  readonly kind: Kind;
  readonly external_id: string;
}

function bodyOf(digest: string): string {
  return `body ${digest}`;
}

const subject = "account = ? AND kind = ? AND external_id = ?";
const letterColumns = "place, id, kind, reason, received_ms AS receivedMs, body";

function statementsOf(database: DatabaseSync) {
  const make = (text: string) => database.prepare(text);
  return {
    accountOf: make("SELECT id, epoch FROM accounts WHERE name = ?"),
    makeAccount: make(
      "INSERT INTO accounts (name, epoch, tail, floor) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    ),
    account: make("SELECT tail, floor FROM accounts WHERE id = ?"),
    accounts: make("SELECT id FROM accounts"),
    moveTail: make("UPDATE accounts SET tail = ? WHERE id = ?"),
    moveFloor: make("UPDATE accounts SET floor = ? WHERE id = ?"),

    store: make(
      "INSERT INTO events (account, place, kind, external_id, bytes, state) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    lastBefore: make(
      "SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place DESC LIMIT 1",
    ),
    ofSubject: make(
      `SELECT place, kind, bytes, state FROM events WHERE ${subject} AND place > ? ORDER BY place ${boundLimit}`,
    ),
    ofAll: make(
      `SELECT place, kind, bytes, state FROM events WHERE account = ? AND place > ? ORDER BY place ${boundLimit}`,
    ),
    newestOfSubject: make(
      `SELECT place, bytes, state FROM events WHERE ${subject} AND place > ? AND place < ? ORDER BY place DESC ${boundLimit}`,
    ),
    nthNewest: make(
      "SELECT place FROM events WHERE account = ? AND place > ? ORDER BY place DESC LIMIT 1 OFFSET ?",
    ),
    expired: make(
      `SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place ${boundLimit}`,
    ),
    deleteEvents: make("DELETE FROM events WHERE account = ? AND place <= ?"),

    subject: make(`SELECT last, touched_ms, facts, holds, folded FROM subjects WHERE ${subject}`),
    touch: make(
      `INSERT INTO subjects (account, kind, external_id, last, touched_ms, facts, holds, folded)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET last = excluded.last, touched_ms = excluded.touched_ms,
         facts = excluded.facts, holds = excluded.holds, folded = excluded.folded`,
    ),
    keep: make(`UPDATE subjects SET facts = ?, holds = ? WHERE ${subject}`),
    hold: make(
      `INSERT INTO subjects (account, kind, external_id, last, touched_ms, holds)
       VALUES (?, ?, ?, '', ?, ?)
       ON CONFLICT DO UPDATE SET holds = excluded.holds, touched_ms = excluded.touched_ms`,
    ),
    oldSubjects: make(
      `SELECT account, kind, external_id FROM subjects WHERE touched_ms < ? ORDER BY touched_ms ${boundLimit}`,
    ),
    forgetSubject: make(`DELETE FROM subjects WHERE ${subject}`),
    state: make(`SELECT state, bytes FROM states WHERE ${subject} AND state_key = ?`),
    states: make(`SELECT state, bytes FROM states WHERE ${subject}`),
    setState: make(
      `INSERT INTO states (account, kind, external_id, state_key, state, bytes)
       VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET state = excluded.state, bytes = excluded.bytes`,
    ),
    forgetStates: make(`DELETE FROM states WHERE ${subject}`),
    forgetState: make(`DELETE FROM states WHERE ${subject} AND state_key = ?`),

    seen: make("SELECT teller FROM seen WHERE account = ? AND what = ? AND seen_ms >= ?"),
    see: make(
      `INSERT INTO seen (account, what, teller, seen_ms) VALUES (?, ?, 'c', ?)
       ON CONFLICT DO UPDATE SET teller = 'c', seen_ms = excluded.seen_ms`,
    ),
    seeOnce: make(
      `INSERT INTO seen (account, what, teller, seen_ms) VALUES (?1, ?2, 'o', ?3)
       ON CONFLICT DO UPDATE SET teller = 'o', seen_ms = excluded.seen_ms WHERE seen_ms < ?4`,
    ),
    sweepSeen: make(
      `DELETE FROM seen WHERE (account, what) IN
       (SELECT account, what FROM seen WHERE seen_ms < ? ORDER BY seen_ms ${boundLimit})`,
    ),

    begin: make(
      "INSERT INTO unfinished (account, member, since_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
    ),
    finish: make("DELETE FROM unfinished WHERE account = ? AND member = ?"),
    forgetUnfinished: make(
      "DELETE FROM unfinished WHERE account = ? AND member = ? AND since_ms < ?",
    ),
    countUnfinished: make("SELECT count(*) AS many FROM unfinished WHERE account = ?"),
    forgetOldest: make(
      `DELETE FROM unfinished WHERE id =
       (SELECT id FROM unfinished WHERE account = ? ORDER BY since_ms, id LIMIT 1)`,
    ),
    unfinished: make(
      `SELECT member, since_ms AS sinceMs FROM unfinished
       WHERE account = ? AND since_ms >= ? AND since_ms <= ? ORDER BY since_ms, id ${boundLimit}`,
    ),
    sweepUnfinished: make(
      `DELETE FROM unfinished WHERE id IN
       (SELECT id FROM unfinished WHERE since_ms < ? ORDER BY since_ms ${boundLimit})`,
    ),

    addDeadLetter: make(
      "INSERT INTO dead_letters (account, id, kind, body, reason, received_ms) VALUES (?, ?, ?, ?, ?, ?)",
    ),
    letter: make(`SELECT ${letterColumns} FROM dead_letters WHERE account = ? AND id = ?`),
    lettersBehind: make(
      `SELECT ${letterColumns} FROM dead_letters WHERE account = ? AND place > ? ORDER BY place ${boundLimit}`,
    ),
    lettersBefore: make(
      `SELECT ${letterColumns} FROM dead_letters WHERE account = ? AND place < ? ORDER BY place DESC ${boundLimit}`,
    ),
    countLetters: make(
      "SELECT count(*) AS many, coalesce(sum(length(body)), 0) AS size FROM dead_letters WHERE account = ?",
    ),
    removeDeadLetter: make("DELETE FROM dead_letters WHERE account = ? AND id = ?"),
  };
}

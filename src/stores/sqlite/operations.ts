import type { DatabaseSync } from "node:sqlite";
import { type Bounds, cursorOf, firstPlace, nextPlace, placeOf } from "../cursor.ts";
import {
  type Commit,
  type Committed,
  type Found,
  filledIn,
  instantOf,
  merged,
  type RangeOptions,
  type Read,
  type RecordChange,
  type Row,
  type RowPage,
  type Scored,
} from "../kernel.ts";
import type { Operations } from "./worker.ts";

/** Sorts after every place, since places are hex digits. */
const behindAll = "~";

/** Most rows of a table that one sweep deletes: writes wait for it. */
const sweepSize = 1_000;

/** An account, which is added at its first use, with this epoch of its log. */
export interface AccountName {
  readonly name: string;
  readonly epoch: string;
}

/** What the store does in its thread. */
export function open(database: DatabaseSync): Operations {
  const sql = statementsOf(database);
  /** Rows of accounts as they are in the database, which nobody else writes. */
  const known = new Map<string, AccountRow>();

  function accountOf({ name, epoch }: AccountName): AccountRow {
    let account = known.get(name) ?? (sql.account.get(name) as AccountRow | undefined);
    if (!account) {
      sql.makeAccount.run(name, epoch, firstPlace, firstPlace);
      account = sql.account.get(name) as unknown as AccountRow;
    }
    known.set(name, account);
    return account;
  }

  /** Events at or before this place are no longer kept. */
  function floorOf({ id, floor }: AccountRow, oldest: string): string {
    const expired = sql.lastBefore.get(id, oldest) as { place: string } | undefined;
    return expired?.place ?? floor;
  }

  function boundsOf({ epoch, tail }: AccountRow, floor: string): Bounds {
    return { epoch, floor: cursorOf(floor, epoch), tail: cursorOf(tail, epoch) };
  }

  /** A record that is not past its time; the sweep may not have come to one that is. */
  function recordOf(account: number, key: string, nowMs: number): RecordRow | undefined {
    const record = sql.record.get(account, key) as RecordRow | undefined;
    return record && !isOver(record, nowMs) ? record : undefined;
  }

  function flagOf(account: number, key: string, name: string): string {
    return (sql.part.get(account, key, `f:${name}`) as { value: string } | undefined)?.value ?? "";
  }

  /** What the store has. A record that is past its time is deleted, since a new one may follow. */
  function found(account: number, { key, expected }: RecordChange, nowMs: number): Found {
    let record = sql.record.get(account, key) as RecordRow | undefined;
    if (record && isOver(record, nowMs)) {
      forget(account, key);
      record = undefined;
    }
    const flags = new Map<string, string>();
    for (const name of expected.keys()) flags.set(name, record ? flagOf(account, key, name) : "");
    return { key, version: record?.version ?? "", text: record?.text ?? "", flags };
  }

  function isAsSupposed({ was, expected }: RecordChange, now: Found): boolean {
    if (now.version !== was) return false;
    for (const [name, value] of expected) if (now.flags.get(name) !== value) return false;
    return true;
  }

  function forget(account: number, key: string): void {
    sql.forgetParts.run(account, key);
    sql.forgetMembers.run(account, key);
    sql.forgetRecord.run(account, key);
  }

  function change(
    account: number,
    { key, attachments, flags, keepMs }: RecordChange,
    text: string,
    version: string,
    nowMs: number,
  ): void {
    if (text === "") {
      forget(account, key);
      return;
    }
    sql.setRecord.run(account, key, version, text, Math.ceil(nowMs + keepMs));
    for (const [name, bytes] of attachments) {
      if (bytes) sql.setPart.run(account, key, `a:${name}`, bytes);
      else sql.dropPart.run(account, key, `a:${name}`);
    }
    for (const [name, value] of flags) sql.setPart.run(account, key, `f:${name}`, value);
  }

  return {
    reads: {
      read(account: AccountName, oldest: string, keys: readonly string[], nowMs: number): Read {
        const of = accountOf(account);
        const records = keys.map((key) => {
          const record = recordOf(of.id, key, nowMs);
          const rows = record ? sql.attachments.all(of.id, key) : [];
          const attachments = new Map(
            (rows as { name: string; value: Uint8Array }[]).map(({ name, value }) => [
              name.slice(2),
              value,
            ]),
          );
          return { key, version: record?.version ?? "", text: record?.text ?? "", attachments };
        });
        return { records, bounds: boundsOf(of, floorOf(of, oldest)) };
      },

      page(
        account: AccountName,
        oldest: string,
        topic: string | undefined,
        after: string | undefined,
        limit: number,
      ): RowPage {
        const of = accountOf(account);
        const floor = floorOf(of, oldest);
        const from = after !== undefined && after > floor ? after : floor;
        const rows = sql.after(of.id, topic, from, limit + 1);
        const shown = rows.slice(0, limit).map((row) => rowOf(row, of));
        const isCut = rows.length > limit;
        const bounds = boundsOf(of, floor);
        return { rows: shown, upTo: (isCut && shown.at(-1)?.cursor) || bounds.tail, bounds };
      },

      newest(
        account: AccountName,
        oldest: string,
        topic: string | undefined,
        limit: number,
        before = behindAll,
      ): Row[] {
        const of = accountOf(account);
        const rows = sql.newest(of.id, topic, floorOf(of, oldest), before, Math.max(limit, 0));
        return rows.reverse().map((row) => rowOf(row, of));
      },

      range(account: AccountName, indexes: readonly string[], options: RangeOptions) {
        const { id } = accountOf(account);
        const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE, limit, newestFirst } = options;
        const members = newestFirst ? sql.highest : sql.lowest;
        const found = indexes.flatMap((index) => members.all(id, index, min, max, limit));
        return merged(found as unknown as Scored[], options);
      },

      count: (account: AccountName, index: string) =>
        (sql.count.get(accountOf(account).id, index) as { many: number }).many,
    },

    writes: {
      commit(name: AccountName, commit: Commit, nowMs: number): Committed {
        const { token, records, events, indexes } = commit;
        const of = accountOf(name);
        const { id: account, epoch } = of;
        const now = records.map((one) => found(account, one, nowMs));
        if (!records.every((one, at) => isAsSupposed(one, now[at] as Found))) {
          return { kind: "conflict", nowMs, records: now };
        }
        let last = of.tail;
        const places = events.map(({ topic, bytes }) => {
          last = nextPlace(last, nowMs);
          sql.store.run(account, last, topic, bytes);
          return last;
        });
        const instant = instantOf(commit, nowMs, of.instant);
        if (places.length > 0 || instant !== undefined) {
          of.tail = last;
          of.instant = instant ?? of.instant;
          sql.moveEnd.run(of.tail, of.instant, account);
        }
        for (const one of records) {
          if (one.text === undefined) continue;
          const text = filledIn(one.text, token, places, nowMs, instant);
          change(account, one, text, token, nowMs);
        }
        for (const { index, member, score: given } of indexes) {
          const score = given === "instant" ? instant : given;
          if (score === undefined) sql.drop.run(account, index, member);
          else sql.add.run(account, index, member, score);
        }
        const cursors = places.map((place) => cursorOf(place, epoch));
        return { kind: "committed", nowMs, cursors, instant };
      },

      drop(account: AccountName, index: string, members: readonly string[]): void {
        const { id } = accountOf(account);
        for (const member of members) sql.drop.run(id, index, member);
      },

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
          known.clear();
          more ||= expired.length === sweepSize;
        }
        const gone = sql.oldRecords.all(nowMs, sweepSize);
        for (const { account, key } of gone as unknown as { account: number; key: string }[]) {
          forget(account, key);
        }
        return more || gone.length === sweepSize;
      },

      /** Shows that the disk takes writes, and has space for more than the smallest. */
      probe: () => void sql.probe.run(),
    },

    undone: () => known.clear(),
  };
}

export interface AccountRow {
  readonly id: number;
  readonly epoch: string;
  /** Places of the last event ever appended, and of the last one that was deleted. */
  tail: string;
  readonly floor: string;
  /** The latest instant of a commit; see IndexChange. */
  instant: number;
}

/** A place is a cursor without its epoch. */
export interface EventRow {
  readonly place: string;
  readonly bytes: Uint8Array;
}

function rowOf({ place, bytes }: EventRow, { epoch }: AccountRow): Row {
  return { cursor: cursorOf(place, epoch), bytes };
}

export interface RecordRow {
  readonly version: string;
  readonly text: string;
  readonly until_ms: number;
}

function isOver({ until_ms }: RecordRow, nowMs: number): boolean {
  return until_ms < nowMs;
}

function statementsOf(database: DatabaseSync) {
  const make = (text: string) => database.prepare(text);
  /** Reads events at places that `where` limits: of one topic, or of all. */
  const eventsBy = (where: string, order: string) => {
    const [ofAll, ofTopic] = ["", "topic = ? AND "].map((of) =>
      make(
        `SELECT place, bytes FROM events WHERE account = ? AND ${of}${where}
         ORDER BY place ${order} ${boundLimit}`,
      ),
    );
    return (account: number, topic: string | undefined, ...rest: (string | number)[]) =>
      (topic === undefined
        ? ofAll?.all(account, ...rest)
        : ofTopic?.all(account, topic, ...rest)) as unknown as EventRow[];
  };
  const membersBy = (order: string) =>
    make(
      `SELECT member, score FROM members WHERE account = ? AND name = ? AND score >= ? AND score <= ?
       ORDER BY score ${order} ${boundLimit}`,
    );
  return {
    probe: make(
      `INSERT INTO probe (id, bytes) VALUES (1, randomblob(65536))
       ON CONFLICT DO UPDATE SET bytes = excluded.bytes`,
    ),
    account: make("SELECT id, epoch, tail, floor, instant FROM accounts WHERE name = ?"),
    accounts: make("SELECT id FROM accounts"),
    makeAccount: make("INSERT INTO accounts (name, epoch, tail, floor) VALUES (?, ?, ?, ?)"),
    moveEnd: make("UPDATE accounts SET tail = ?, instant = ? WHERE id = ?"),
    moveFloor: make("UPDATE accounts SET floor = ? WHERE id = ?"),

    record: make("SELECT version, text, until_ms FROM records WHERE account = ? AND key = ?"),
    setRecord: make(
      `INSERT INTO records (account, key, version, text, until_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET version = excluded.version, text = excluded.text,
         until_ms = excluded.until_ms`,
    ),
    forgetRecord: make("DELETE FROM records WHERE account = ? AND key = ?"),
    oldRecords: make(
      `SELECT account, key FROM records WHERE until_ms < ? ORDER BY until_ms ${boundLimit}`,
    ),
    part: make("SELECT value FROM parts WHERE account = ? AND key = ? AND name = ?"),
    attachments: make(
      `SELECT name, value FROM parts WHERE account = ? AND key = ? AND name >= 'a:' AND name < 'b'`,
    ),
    setPart: make(
      `INSERT INTO parts (account, key, name, value) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET value = excluded.value`,
    ),
    dropPart: make("DELETE FROM parts WHERE account = ? AND key = ? AND name = ?"),
    forgetParts: make("DELETE FROM parts WHERE account = ? AND key = ?"),
    forgetMembers: make("DELETE FROM members WHERE account = ? AND member = ?"),

    store: make("INSERT INTO events (account, place, topic, bytes) VALUES (?, ?, ?, ?)"),
    lastBefore: make(
      "SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place DESC LIMIT 1",
    ),
    after: eventsBy("place > ?", "ASC"),
    newest: eventsBy("place > ? AND place < ?", "DESC"),
    expired: make(
      `SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place ${boundLimit}`,
    ),
    deleteEvents: make("DELETE FROM events WHERE account = ? AND place <= ?"),

    add: make(
      `INSERT INTO members (account, name, member, score) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET score = excluded.score`,
    ),
    drop: make("DELETE FROM members WHERE account = ? AND name = ? AND member = ?"),
    lowest: membersBy("ASC"),
    highest: membersBy("DESC"),
    count: make("SELECT count(*) AS many FROM members WHERE account = ? AND name = ?"),
  };
}

/**
 * SQL for a row limit that is bound when the statement runs. SQLite 3.53 plans a bare `LIMIT ?`
 * with its value, so it parses the statement anew at each binding; it does not do so for an
 * expression.
 */
const boundLimit = "LIMIT (? + 0)";

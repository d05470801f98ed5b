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
import type { EventRow } from "./export.ts";
import type { Operations } from "./protocol.ts";

/** Sorts after every place, since places are hex digits. */
const behindAll = "~";

/** Most rows of a table that one sweep deletes: writes wait for it. */
const sweepSize = 1_000;

/** What the store does in its thread. Accounts are given by name; each is added at its first use. */
export function open(database: DatabaseSync): Operations {
  const sql = statementsOf(database);
  /** Rows of accounts as they are in the database, which nobody else writes. */
  const known = new Map<string, AccountRow>();

  function accountOf(name: string): AccountRow {
    let account = known.get(name);
    if (account) return account;
    account = sql.account.get(name) as AccountRow | undefined;
    if (account) {
      known.set(name, account);
      return account;
    }
    return { id: -1, epoch: "", tail: firstPlace, floor: firstPlace, instant: 0 };
  }

  function makeAccount(name: string, epoch: string): void {
    sql.makeAccount.run(name, epoch, firstPlace, firstPlace);
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
    return (sql.flag.get(account, key, name) as { value: string } | undefined)?.value ?? "";
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
    sql.forgetAttachments.run(account, key);
    sql.forgetFlags.run(account, key);
    sql.forgetMembers.run(account, key);
    sql.forgetRecord.run(account, key);
  }

  function change(account: number, one: RecordChange, text: string, at: At): void {
    const { key, attachments, flags, keepMs } = one;
    if (text === "") {
      forget(account, key);
      return;
    }
    sql.setRecord.run(account, key, at.version, text, Math.ceil(at.nowMs + keepMs));
    for (const [name, bytes] of attachments) {
      if (bytes) sql.attach.run(account, key, name, bytes);
      else sql.detach.run(account, key, name);
    }
    for (const [name, value] of flags) sql.setFlag.run(account, key, name, value);
  }

  return {
    reads: {
      read(account: string, oldest: string, keys: readonly string[], nowMs: number): Read {
        const of = accountOf(account);
        const records = keys.map((key) => {
          const record = recordOf(of.id, key, nowMs);
          const rows = record ? sql.attachments.all(of.id, key) : [];
          const attachments = new Map(
            (rows as { name: string; bytes: Uint8Array }[]).map(({ name, bytes }) => [name, bytes]),
          );
          return { key, version: record?.version ?? "", text: record?.text ?? "", attachments };
        });
        return { records, bounds: boundsOf(of, floorOf(of, oldest)) };
      },

      page(
        account: string,
        oldest: string,
        topic: string | undefined,
        after: string | undefined,
        limit: number,
      ): RowPage {
        const of = accountOf(account);
        const floor = floorOf(of, oldest);
        const from = after !== undefined && after > floor ? after : floor;
        const rows = (topic === undefined
          ? sql.ofAll.all(of.id, from, limit + 1)
          : sql.ofTopic.all(of.id, topic, from, limit + 1)) as unknown as EventRow[];
        const shown = rows.slice(0, limit).map((row) => rowOf(row, of));
        const isCut = rows.length > limit;
        const bounds = boundsOf(of, floor);
        return { rows: shown, upTo: (isCut && shown.at(-1)?.cursor) || bounds.tail, bounds };
      },

      newest(
        account: string,
        oldest: string,
        topic: string | undefined,
        limit: number,
        before = behindAll,
      ): Row[] {
        const of = accountOf(account);
        const range = [floorOf(of, oldest), before, Math.max(limit, 0)] as const;
        const rows =
          topic === undefined
            ? sql.newestOfAll.all(of.id, ...range)
            : sql.newestOfTopic.all(of.id, topic, ...range);
        return (rows.reverse() as unknown as EventRow[]).map((row) => rowOf(row, of));
      },

      range(account: string, indexes: readonly string[], options: RangeOptions) {
        const { id } = accountOf(account);
        const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE, limit, newestFirst } = options;
        const members = newestFirst ? sql.highest : sql.lowest;
        const found = indexes.flatMap((index) => members.all(id, index, min, max, limit));
        return merged(found as unknown as Scored[], options);
      },

      count: (account: string, index: string) =>
        (sql.count.get(accountOf(account).id, index) as { many: number }).many,
    },

    writes: {
      /** Adds an account, unless it is there. @returns the epoch of its log */
      account(name: string, epoch: string): string {
        makeAccount(name, epoch);
        return accountOf(name).epoch;
      },

      commit(name: string, commit: Commit, nowMs: number): Committed {
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
          change(account, one, text, { version: token, nowMs });
        }
        for (const { index, member, score: given } of indexes) {
          const score = given === "instant" ? instant : given;
          if (score === undefined) sql.drop.run(account, index, member);
          else sql.add.run(account, index, member, score);
        }
        const cursors = places.map((place) => cursorOf(place, epoch));
        return { kind: "committed", nowMs, cursors, instant };
      },

      drop(account: string, index: string, members: readonly string[]): void {
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

interface AccountRow {
  readonly id: number;
  readonly epoch: string;
  tail: string;
  readonly floor: string;
  instant: number;
}

function rowOf({ place, bytes }: EventRow, { epoch }: AccountRow): Row {
  return { cursor: cursorOf(place, epoch), bytes };
}

interface RecordRow {
  readonly version: string;
  readonly text: string;
  readonly until_ms: number;
}

function isOver({ until_ms }: RecordRow, nowMs: number): boolean {
  return until_ms < nowMs;
}

interface At {
  readonly version: string;
  readonly nowMs: number;
}

function statementsOf(database: DatabaseSync) {
  const make = (text: string) => database.prepare(text);
  return {
    probe: make(
      `INSERT INTO probe (id, bytes) VALUES (1, randomblob(65536))
       ON CONFLICT DO UPDATE SET bytes = excluded.bytes`,
    ),
    account: make("SELECT id, epoch, tail, floor, instant FROM accounts WHERE name = ?"),
    accounts: make("SELECT id FROM accounts"),
    makeAccount: make(
      "INSERT INTO accounts (name, epoch, tail, floor) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
    ),
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
    attachments: make("SELECT name, bytes FROM attachments WHERE account = ? AND key = ?"),
    attach: make(
      `INSERT INTO attachments (account, key, name, bytes) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET bytes = excluded.bytes`,
    ),
    detach: make("DELETE FROM attachments WHERE account = ? AND key = ? AND name = ?"),
    forgetAttachments: make("DELETE FROM attachments WHERE account = ? AND key = ?"),
    flag: make("SELECT value FROM flags WHERE account = ? AND key = ? AND name = ?"),
    setFlag: make(
      `INSERT INTO flags (account, key, name, value) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET value = excluded.value`,
    ),
    forgetFlags: make("DELETE FROM flags WHERE account = ? AND key = ?"),
    forgetMembers: make("DELETE FROM members WHERE account = ? AND member = ?"),

    store: make("INSERT INTO events (account, place, topic, bytes) VALUES (?, ?, ?, ?)"),
    lastBefore: make(
      "SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place DESC LIMIT 1",
    ),
    ofTopic: make(
      `SELECT place, bytes FROM events WHERE account = ? AND topic = ? AND place > ?
       ORDER BY place ${boundLimit}`,
    ),
    ofAll: make(
      `SELECT place, bytes FROM events WHERE account = ? AND place > ? ORDER BY place ${boundLimit}`,
    ),
    newestOfTopic: make(
      `SELECT place, bytes FROM events WHERE account = ? AND topic = ? AND place > ? AND place < ?
       ORDER BY place DESC ${boundLimit}`,
    ),
    newestOfAll: make(
      `SELECT place, bytes FROM events WHERE account = ? AND place > ? AND place < ?
       ORDER BY place DESC ${boundLimit}`,
    ),
    expired: make(
      `SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place ${boundLimit}`,
    ),
    deleteEvents: make("DELETE FROM events WHERE account = ? AND place <= ?"),

    add: make(
      `INSERT INTO members (account, name, member, score) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET score = excluded.score`,
    ),
    drop: make("DELETE FROM members WHERE account = ? AND name = ? AND member = ?"),
    lowest: make(
      `SELECT member, score FROM members WHERE account = ? AND name = ? AND score >= ? AND score <= ?
       ORDER BY score ${boundLimit}`,
    ),
    highest: make(
      `SELECT member, score FROM members WHERE account = ? AND name = ? AND score >= ? AND score <= ?
       ORDER BY score DESC ${boundLimit}`,
    ),
    count: make("SELECT count(*) AS many FROM members WHERE account = ? AND name = ?"),
  };
}

/**
 * SQL for a row limit that is bound when the statement runs. SQLite 3.53 plans a bare `LIMIT ?`
 * with its value, so it parses the statement anew at each binding; it does not do so for an
 * expression.
 */
const boundLimit = "LIMIT (? + 0)";

import type { DatabaseSync, StatementSync } from "node:sqlite";
import { firstPlace, oldestPlace } from "../cursor.ts";
import type { RangeOptions, RecordChange, Scored } from "../kernel.ts";
import type { Operation } from "../local-account.ts";
import { type KeptEvent, type KeptRecord, StoredAccount } from "../stored-account.ts";
import type { Operations } from "./worker.ts";

/** Most rows of a table that one sweep deletes: writes wait for it. */
const sweepSize = 1_000;

/** An account, which is added at its first use, with this epoch of its log. */
export interface AccountName {
  readonly name: string;
  readonly epoch: string;
  /** How long its events are kept, in milliseconds. */
  readonly retentionMs: number;
}

/** What the store does in its thread. */
export function open(database: DatabaseSync): Operations {
  const statements = new Map<string, StatementSync>();
  const sql: Sql = (text) => {
    let statement = statements.get(text);
    if (!statement) {
      statement = database.prepare(text);
      statements.set(text, statement);
    }
    return statement;
  };
  /** Accounts as they are in the database, which nobody else writes. */
  const known = new Map<string, SqliteAccount>();
  const on =
    (operation: Operation) =>
    (of: AccountName, ...args: unknown[]) => {
      const account = known.get(of.name) ?? new SqliteAccount(sql, of);
      known.set(of.name, account);
      return Reflect.apply(account[operation], account, args);
    };
  return {
    reads: { read: on("read"), page: on("page"), range: on("range") },
    writes: {
      commit: on("commit"),

      /** Deletes some of the expired rows. @returns whether there may be more */
      sweep(nowMs: number, retentionMs: number): boolean {
        const oldest = oldestPlace(nowMs, retentionMs);
        let more = false;
        for (const { id } of sql("SELECT id FROM accounts").all() as { id: number }[]) {
          const expired = sql(
            "SELECT place FROM events WHERE account = ? AND place < ? ORDER BY place LIMIT (? + 0)",
          ).all(id, oldest, sweepSize);
          const last = expired.at(-1)?.place;
          if (last === undefined) continue;
          sql("DELETE FROM events WHERE account = ? AND place <= ?").run(id, last);
          sql("UPDATE accounts SET floor = ? WHERE id = ?").run(last, id);
          more ||= expired.length === sweepSize;
        }
        const gone = sql(
          "SELECT account, key FROM records WHERE until_ms < ? ORDER BY until_ms LIMIT (? + 0)",
        ).all(nowMs, sweepSize) as { account: number; key: string }[];
        for (const { account, key } of gone) forget(sql, account, key);
        return more || gone.length === sweepSize;
      },

      /** Shows that the disk takes writes, and has space for more than the smallest. */
      probe: () =>
        void sql(
          `INSERT INTO probe (id, bytes) VALUES (1, randomblob(65536))
           ON CONFLICT DO UPDATE SET bytes = excluded.bytes`,
        ).run(),
    },

    undone: () => known.clear(),
  };
}

/**
 * Prepares a statement, once. A row limit that is bound when it runs is `LIMIT (? + 0)`: SQLite 3.53
 * plans a bare `LIMIT ?` with its value, so it parses the statement anew at each binding; it does not
 * do so for an expression.
 */
type Sql = (text: string) => StatementSync;

/** A row of the table `accounts`. */
export interface AccountRow {
  readonly id: number;
  readonly name: string;
  readonly epoch: string;
  readonly tail: string;
  readonly floor: string;
  readonly instant: number;
}

/** An account as it is in the database. */
class SqliteAccount extends StoredAccount {
  readonly epoch: string;
  tail: string;
  instant: number;
  readonly #sql: Sql;
  readonly #id: number;
  readonly #retentionMs: number;

  constructor(sql: Sql, { name, epoch, retentionMs }: AccountName) {
    super();
    const find = () =>
      sql("SELECT * FROM accounts WHERE name = ?").get(name) as AccountRow | undefined;
    let row = find();
    if (!row) {
      const insert = "INSERT INTO accounts (name, epoch, tail, floor) VALUES (?, ?, ?, ?)";
      sql(insert).run(name, epoch, firstPlace, firstPlace);
      row = find() as AccountRow;
    }
    this.#sql = sql;
    this.#retentionMs = retentionMs;
    this.#id = row.id;
    this.epoch = row.epoch;
    this.tail = row.tail;
    this.instant = row.instant;
  }

  protected floor(nowMs: number): string {
    const expired =
      "SELECT place FROM events WHERE account = id AND place < ? ORDER BY place DESC LIMIT 1";
    const floor = this.#sql(`SELECT ifnull((${expired}), floor) AS at FROM accounts WHERE id = ?`);
    return floor.get(oldestPlace(nowMs, this.#retentionMs), this.#id)?.at as string;
  }

  protected record(key: string): KeptRecord | undefined {
    return this.#sql(
      "SELECT version, text, until_ms AS untilMs FROM records WHERE account = ? AND key = ?",
    ).get(this.#id, key) as KeptRecord | undefined;
  }

  protected attachments(key: string): Map<string, Uint8Array> {
    const rows = this.#sql(
      "SELECT name, value FROM parts WHERE account = ? AND key = ? AND name >= 'a:' AND name < 'b'",
    ).all(this.#id, key) as { name: string; value: Uint8Array }[];
    return new Map(rows.map(({ name, value }) => [name.slice(2), value]));
  }

  protected flag(key: string, name: string): string {
    const part = this.#sql(
      "SELECT value FROM parts WHERE account = ? AND key = ? AND name = ?",
    ).get(this.#id, key, `f:${name}`);
    return (part?.value as string | undefined) ?? "";
  }

  protected change(
    { key, attachments, flags }: RecordChange,
    version: string,
    text: string,
    untilMs: number,
  ): void {
    this.#sql(
      `INSERT INTO records (account, key, version, text, until_ms) VALUES (?, ?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET version = excluded.version, text = excluded.text,
         until_ms = excluded.until_ms`,
    ).run(this.#id, key, version, text, Math.ceil(untilMs));
    for (const [name, bytes] of attachments) this.#setPart(key, `a:${name}`, bytes);
    for (const [name, value] of flags) this.#setPart(key, `f:${name}`, value);
  }

  #setPart(key: string, name: string, value: string | Uint8Array | undefined): void {
    if (value === undefined) {
      const drop = "DELETE FROM parts WHERE account = ? AND key = ? AND name = ?";
      this.#sql(drop).run(this.#id, key, name);
      return;
    }
    this.#sql(
      `INSERT INTO parts (account, key, name, value) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET value = excluded.value`,
    ).run(this.#id, key, name, value);
  }

  protected forget(key: string): void {
    forget(this.#sql, this.#id, key);
  }

  protected add(place: string, topic: string, bytes: Uint8Array): void {
    const insert = "INSERT INTO events (account, place, topic, bytes) VALUES (?, ?, ?, ?)";
    this.#sql(insert).run(this.#id, place, topic, bytes);
  }

  protected moveEnd(tail: string, instant: number): void {
    this.tail = tail;
    this.instant = instant;
    const move = "UPDATE accounts SET tail = ?, instant = ? WHERE id = ?";
    this.#sql(move).run(tail, instant, this.#id);
  }

  protected events(
    topic: string | undefined,
    after: string,
    before: string,
    limit: number,
    newest: boolean,
  ): KeptEvent[] {
    const of = topic === undefined ? [this.#id] : [this.#id, topic];
    return this.#sql(
      `SELECT place, bytes FROM events WHERE account = ? ${topic === undefined ? "" : "AND topic = ?"}
       AND place > ? AND place < ? ORDER BY place ${newest ? "DESC" : "ASC"} LIMIT (? + 0)`,
    ).all(...of, after, before, limit) as unknown as KeptEvent[];
  }

  protected setScore(index: string, member: string, score: number | undefined): void {
    if (score === undefined) {
      const drop = "DELETE FROM members WHERE account = ? AND name = ? AND member = ?";
      this.#sql(drop).run(this.#id, index, member);
      return;
    }
    this.#sql(
      `INSERT INTO members (account, name, member, score) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET score = excluded.score`,
    ).run(this.#id, index, member, score);
  }

  protected members(index: string, options: RangeOptions): Scored[] {
    const { min = -Number.MAX_VALUE, max = Number.MAX_VALUE, limit, newestFirst } = options;
    return this.#sql(
      `SELECT member, score FROM members WHERE account = ? AND name = ? AND score >= ? AND score <= ?
       ORDER BY score ${newestFirst ? "DESC" : "ASC"} LIMIT (? + 0)`,
    ).all(this.#id, index, min, max, limit) as unknown as Scored[];
  }
}

/** Removes a record with its members of indexes. */
function forget(sql: Sql, account: number, key: string): void {
  sql("DELETE FROM parts WHERE account = ? AND key = ?").run(account, key);
  sql("DELETE FROM members WHERE account = ? AND member = ?").run(account, key);
  sql("DELETE FROM records WHERE account = ? AND key = ?").run(account, key);
}

import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { maskCardNumbers } from "../../src/secrets/mask-card-numbers.ts";
import { Secret } from "../../src/secrets/secret.ts";

/** What a run keeps beyond its process. */
export type SavedKind =
  | "card"
  | "wallet"
  | "payment"
  | "payout"
  | "subscription"
  | "callback"
  | "clock";

/** A run's state in a file. */
export interface SavedState {
  /** Nothing was ever saved. */
  readonly isNew: boolean;
  /**
   * All values of a kind, in the order in which their keys were first put. A member whose name ends
   * with `At` is a date.
   * @template Value what is put under this kind
   */
  all<Value extends object>(kind: SavedKind): Value[];
  /**
   * Saves a value as it is at the end of this turn, in one commit with all that changes in the
   * turn, and before an answer to it is sent. A `Secret` in it is left out, and card numbers in
   * free texts are masked.
   */
  put(kind: SavedKind, key: string, value: object): void;
  remove(kind: SavedKind, key: string): void;
  close(): void;
}

/** Keeps everything in memory alone. */
export const nothingSaved: SavedState = {
  isNew: true,
  all: () => [],
  put() {},
  remove() {},
  close() {},
};

/** A file that cannot be used. The message says what to do. */
export class SavedStateError extends Error {
  override readonly name = "SavedStateError";

  constructor(path: string, why: string) {
    super(`the sandbox's ${path} cannot be used (${why}): delete it, and the sandbox begins anew`);
  }
}

/** Number of the layout below: a file with another one is refused. */
const layout = 1;

/**
 * Opens a run's file, and creates it if there is none, for its owner alone. It is whole after a
 * crash of the process; a loss of power may lose the newest changes.
 * @throws SavedStateError
 */
export function openSavedState(path: string, onError: (error: unknown) => void): SavedState {
  const { database, isNew, select, upsert, remove } = opened(path);
  const changes = new Map<
    string,
    readonly [kind: string, key: string, value: object | undefined]
  >();
  let isClosed = false;
  let isDue = false;

  function note(kind: string, key: string, value?: object): void {
    if (isClosed) return;
    if (!isDue) queueMicrotask(commit);
    isDue = true;
    changes.set(`${kind} ${key}`, [kind, key, value]);
  }

  /** On an error, a full disk for example, the changes wait for the next commit. */
  function commit(): void {
    isDue = false;
    if (changes.size === 0 || isClosed) return;
    try {
      database.exec("BEGIN");
      for (const [kind, key, value] of changes.values()) {
        if (value === undefined) remove.run(kind, key);
        else upsert.run(kind, key, textOf(value));
      }
      database.exec("COMMIT");
      changes.clear();
    } catch (error) {
      if (database.isTransaction) database.exec("ROLLBACK");
      onError(error);
    }
  }

  return {
    isNew,
    all: (kind) => select.all(kind).map(({ value }) => JSON.parse(String(value), withDates)),
    put: note,
    remove: note,
    close() {
      if (isClosed) return;
      commit();
      isClosed = true;
      database.close();
    },
  };
}

function opened(path: string) {
  try {
    // SQLite gives the files beside it the same permissions.
    closeSync(openSync(path, "a", 0o600));
    const database = new DatabaseSync(path);
    try {
      return { database, isNew: prepared(database), ...statements(database) };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    throw new SavedStateError(path, (error as Error).message);
  }
}

function statements(database: DatabaseSync) {
  return {
    select: database.prepare("SELECT value FROM saved WHERE kind = ? ORDER BY number"),
    upsert: database.prepare(`INSERT INTO saved (kind, key, value) VALUES (?, ?, ?)
      ON CONFLICT (kind, key) DO UPDATE SET value = excluded.value`),
    remove: database.prepare("DELETE FROM saved WHERE kind = ? AND key = ?"),
  };
}

/** @returns whether it is empty */
function prepared(database: DatabaseSync): boolean {
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
  const [check] = Object.values(database.prepare("PRAGMA quick_check(1)").get() ?? {});
  if (check !== "ok") throw new Error(String(check));
  const found = Number(database.prepare("PRAGMA user_version").get()?.user_version);
  if (found !== 0 && found !== layout) throw new Error(`its layout is ${found}, not ${layout}`);
  database.exec(`
    CREATE TABLE IF NOT EXISTS saved (
      number INTEGER PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL,
      UNIQUE (kind, key));
    PRAGMA user_version = ${layout}`);
  return database.prepare("SELECT 1 FROM saved LIMIT 1").get() === undefined;
}

/** Members with texts that are free, and may quote a card number. */
const freeTexts = [
  ...["description", "payload", "name", "patronym"],
  ...["firstName", "lastName", "middleName", "first_name", "last_name", "middle_name"],
];
/** The same members in the body of a callback, which is JSON. */
const freeTextInBody = new RegExp(
  `(?<="(?:${freeTexts.join("|")})":")(?:[^"\\\\]|\\\\.)*(?=")`,
  "g",
);

function textOf(value: object): string {
  return JSON.stringify(value, function (this: Record<string, unknown>, key: string, member) {
    // A Secret has become text before this is called.
    if (this[key] instanceof Secret) return undefined;
    if (typeof member !== "string") return member;
    if (key === "body") return member.replace(freeTextInBody, (text) => maskCardNumbers(text));
    return freeTexts.includes(key) ? maskCardNumbers(member) : member;
  });
}

function withDates(key: string, value: unknown): unknown {
  return typeof value === "string" && key.endsWith("At") ? new Date(value) : value;
}

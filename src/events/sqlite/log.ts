import { errorOfAbort, GatewayError } from "../../errors.ts";
import type { Keyring } from "../../secrets/keyring.ts";
import type { Seal } from "../../secrets/seal.ts";
import { moduleBeside } from "../../sqlite/module-beside.ts";
import type { StoreThread } from "../../sqlite/store-thread.ts";
import { numberOf } from "../letter-place.ts";
import type { DeadLetter, DeadLettersOptions, EventLog, StoredDeadLetter } from "../log.ts";
import { readOn } from "../tail.ts";
import { SqliteAccount } from "./account.ts";
import type { LettersBound } from "./operations.ts";
import type { LetterRow } from "./rows.ts";

export interface SqliteLogOptions {
  /** Has the module `eventsRoom` as its room `events`. Stays open when the log is closed. */
  readonly thread: StoreThread;
  /** How long events can be read again and repeats are recognised, in milliseconds. */
  readonly retentionMs: number;
  /** Encrypts the secrets of an account's events and dead letters. */
  readonly keyringOf: (account: string) => Pick<Keyring, "events" | "deadLetters">;
  /**
   * A stored value could not be decrypted, usually because its password is no longer accepted. The
   * event is returned without its secret fields, the letter without its body.
   */
  readonly onLocked?: (details: {
    readonly account: string;
    readonly what: "event" | "dead_letter";
  }) => void;
  /** Wall clock in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
  /** Limits of an account's dead letters. Default: 10,000 letters, and 64 MiB together. */
  readonly letters?: LettersBound;
}

/** The module with the log's operations in the store's thread. */
export const eventsRoom = moduleBeside(import.meta.url, "operations");

/** Small, since a body may have 1 MiB. */
const pageSize = 20;

/** How often expired rows are deleted, in milliseconds; reads ignore them before that. */
const sweepMs = 60_000;

/**
 * The event log in the embedded store of this process. An event is on the disk before it is
 * acknowledged. State is kept for twice the retention after its last event; repeats are recognised
 * for the retention. While the disk takes no writes, `append` throws UNAVAILABLE and readers go on.
 */
export function createSqliteLog(options: SqliteLogOptions): EventLog {
  const { thread, retentionMs, keyringOf, onLocked, now = Date.now } = options;
  const { letters: max = { letters: 10_000, bytes: 64 * 1024 * 1024 } } = options;
  const accounts = new Map<string, SqliteAccount>();
  let closed = false;
  const sweeper = setInterval(() => void sweep(), sweepMs).unref();

  async function sweep(): Promise<void> {
    try {
      // In small portions, so that writes run in between.
      while (!closed && (await thread.run("events", "sweep", [now(), retentionMs])));
    } catch {
      // The store's thread reports its failures itself. The next interval tries again.
    }
  }

  function accountOf(name: string): SqliteAccount {
    if (closed) throw closedError();
    let account = accounts.get(name);
    if (!account) {
      account = new SqliteAccount({
        ...{ thread, name, retentionMs, now },
        seal: keyringOf(name).events,
        onLocked: () => onLocked?.({ account: name, what: "event" }),
      });
      accounts.set(name, account);
    }
    return account;
  }

  /** Runs an operation on an account's dead letters. */
  async function onLetters<T>(account: string, operation: string, ...args: unknown[]): Promise<T> {
    return thread.run<T>("events", operation, [await accountOf(account).id(), ...args]);
  }

  function letterOf(account: string, row: LetterRow): StoredDeadLetter {
    const { place, id, kind, reason, receivedMs, body: sealed } = row;
    const body = sealOf(account).open(sealed, id)?.toString("base64");
    if (body === undefined) onLocked?.({ account, what: "dead_letter" });
    return {
      ...{ id, kind, reason, receivedAtMs: receivedMs, place: `${place}` },
      ...(body !== undefined && { body }),
    };
  }

  function sealOf(account: string): Seal {
    return keyringOf(account).deadLetters;
  }

  return {
    durable: true,

    async append(account, entry) {
      return accountOf(account).append(entry);
    },

    async noteHold(account, externalId, call, isHolding) {
      await accountOf(account).noteHold(externalId, call, isHolding);
    },

    async snapshot(account, kind, externalId) {
      return accountOf(account).snapshot(kind, externalId);
    },

    async read(account, topic, after, read) {
      if (read.signal.aborted) throw errorOfAbort(read.signal);
      return readOn(accountOf(account), topic, after, read);
    },

    async history(account, kind, externalId, limit, before) {
      return accountOf(account).history(kind, externalId, limit, before);
    },

    async cursorBefore(account, count) {
      return accountOf(account).cursorBefore(count);
    },

    async addDeadLetter(account: string, { receivedAtMs: receivedMs, ...letter }: DeadLetter) {
      const body = sealOf(account).close(Buffer.from(letter.body, "base64"), letter.id);
      const row: Omit<LetterRow, "place"> = { ...letter, receivedMs, body };
      if (await onLetters<boolean>(account, "addDeadLetter", row, max)) return;
      throw new GatewayError("UNAVAILABLE", "the dead letters are full: replay or discard some", {
        reason: "DEAD_LETTERS_FULL",
      });
    },

    async *deadLetters(account: string, { newestFirst = false, behind }: DeadLettersOptions = {}) {
      let from = numberOf(behind);
      for (;;) {
        const args = [from, newestFirst, pageSize];
        const rows = await onLetters<LetterRow[]>(account, "letters", ...args);
        for (const row of rows) yield letterOf(account, row);
        if (rows.length < pageSize) return;
        from = rows.at(-1)?.place;
      }
    },

    async deadLetter(account, id) {
      const row = await onLetters<LetterRow | undefined>(account, "letter", id);
      return row && letterOf(account, row);
    },

    async countDeadLetters(account) {
      return onLetters<number>(account, "countLetters");
    },

    async removeDeadLetter(account, id) {
      return onLetters<boolean>(account, "removeDeadLetter", id);
    },

    async unfinished(account, forMs, limit) {
      return accountOf(account).unfinished(forMs, limit);
    },

    async dismiss(account, unfinished) {
      await accountOf(account).dismiss(unfinished);
    },

    async close() {
      closed = true;
      clearInterval(sweeper);
      for (const account of accounts.values()) account.close(closedError());
    },
  };
}

function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the event log is closed", { reason: "LOG_CLOSED" });
}

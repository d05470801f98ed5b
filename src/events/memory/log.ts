import { errorOfAbort, GatewayError } from "../../errors.ts";
import type { EventLog } from "../log.ts";
import { readOn } from "../tail.ts";
import { MemoryAccount } from "./account.ts";
import { MemoryDeadLetters } from "./dead-letters.ts";

export interface MemoryLogOptions {
  /** How long events can be read again and repeats are recognised, in milliseconds. */
  readonly retentionMs: number;
  /** Most events kept per account; the oldest are dropped first. Default: 100,000. */
  readonly maxEvents?: number;
  /** Wall clock in milliseconds. Default: `Date.now`. */
  readonly now?: () => number;
}

/**
 * The event log in this process's memory: it is lost when the process ends.
 *
 * State is kept for twice the retention after its last event, for at most `maxEvents` external ids.
 * Repeats are recognised for the retention, up to ten times `maxEvents` of them. A repeat of an
 * older one is stored as an event again, which never lowers the rank of a state.
 */
export function createMemoryLog(options: MemoryLogOptions): EventLog {
  const { retentionMs, maxEvents = 100_000, now = Date.now } = options;
  const accounts = new Map<string, MemoryAccount>();
  const letters = new MemoryDeadLetters();
  let closed = false;

  function accountOf(name: string): MemoryAccount {
    if (closed) throw closedError();
    let account = accounts.get(name);
    if (!account) {
      account = new MemoryAccount({ retentionMs, maxEvents, now });
      accounts.set(name, account);
    }
    return account;
  }

  return {
    durable: false,

    async append(account, entry) {
      return accountOf(account).append(entry);
    },

    async noteHold(account, externalId, call, isHolding) {
      accountOf(account).noteHold(externalId, call, isHolding);
    },

    async snapshot(account, kind, externalId) {
      return accountOf(account).snapshot(kind, externalId);
    },

    async read(account, topic, after, options) {
      if (options.signal.aborted) throw errorOfAbort(options.signal);
      return readOn(accountOf(account), topic, after, options);
    },

    async history(account, kind, externalId, limit, before) {
      return accountOf(account).history(kind, externalId, limit, before);
    },

    async cursorBefore(account, count) {
      return accountOf(account).cursorBefore(count);
    },

    async addDeadLetter(account, letter) {
      if (closed) throw closedError();
      letters.addDeadLetter(account, letter);
    },

    deadLetters: (account, options) => letters.of(account, options),

    async deadLetter(account, id) {
      return letters.find(account, id);
    },

    async countDeadLetters(account) {
      return letters.count(account);
    },

    async removeDeadLetter(account, id) {
      return letters.removeDeadLetter(account, id);
    },

    async unfinished(account, forMs, limit) {
      return accountOf(account).unfinished(forMs, limit);
    },

    async dismiss(account, unfinished) {
      accountOf(account).dismiss(unfinished);
    },

    async close() {
      closed = true;
      for (const account of accounts.values()) account.close(closedError());
    },
  };
}

function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the event log is closed", { reason: "LOG_CLOSED" });
}

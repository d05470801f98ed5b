import { errorOfAbort, GatewayError } from "../../errors.ts";
import { confirmPrimary } from "../../redis/confirm-primary.ts";
import type { RedisConnector } from "../../redis/connect.ts";
import { accountKeys } from "../../redis/keys.ts";
import { createWriter, type MinReplicas } from "../../redis/writer.ts";
import type { Keyring } from "../../secrets/keyring.ts";
import type { EventLog } from "../log.ts";
import { readOn } from "../tail.ts";
import { RedisAccount } from "./account.ts";
import { RedisDeadLetters } from "./dead-letters.ts";
import type { FeedState } from "./feed.ts";
import { RedisStore } from "./store.ts";
import { createWakeUps } from "./wake-ups.ts";

export interface RedisLogOptions {
  /** Stays open when the log is closed. */
  readonly redis: RedisConnector;
  /** Prefix of all keys. */
  readonly prefix: string;
  /** How long events can be read again and repeats are recognised, in milliseconds. */
  readonly retentionMs: number;
  /** Replicas of Redis that must hold an event before it is acknowledged. Default: 0. */
  readonly minReplicas?: MinReplicas;
  /** Encrypts the secrets of an account's events and dead letters. */
  readonly keyringOf: (account: string) => Pick<Keyring, "events" | "deadLetters">;
  readonly observer?: Partial<RedisLogObserver>;
}

/** Receives what the log reports, for metrics and logs. */
export interface RedisLogObserver {
  /** The live delivery of an account's events changed its state; see FeedState. */
  onFeed(details: {
    readonly account: string;
    readonly state: FeedState;
    readonly error?: unknown;
  }): void;
  /**
   * A stored value could not be decrypted, usually because its password is no longer accepted. The
   * event is returned without its secret fields, the letter without its body.
   */
  onLocked(details: { readonly account: string; readonly what: "event" | "dead_letter" }): void;
}

/**
 * The event log in Redis, shared by all processes that use the same Redis and prefix. Redis has
 * stored what the log acknowledges; whether that outlives Redis depends on its settings (see
 * `describeDurability`).
 *
 * State is kept for twice the retention after its last event; repeats are recognised for the
 * retention. While Redis is out of reach, live readers wait and then go on without a gap; all other
 * calls throw UNAVAILABLE.
 */
export function createRedisLog(options: RedisLogOptions): EventLog {
  const { redis, prefix, retentionMs, minReplicas = 0, keyringOf, observer } = options;
  const { client } = redis;
  const writer = createWriter({ redis, minReplicas });
  const wakeUps = createWakeUps(redis);
  const awaitsReplicas = minReplicas !== 0;
  const letters = new RedisDeadLetters({ client, writer, touchDuplicates: awaitsReplicas });
  const accounts = new Map<string, RedisAccount>();
  let closed = false;

  const keysOf = (name: string) => accountKeys(prefix, name);

  function accountOf(name: string): RedisAccount {
    if (closed) throw closedError();
    let account = accounts.get(name);
    if (!account) {
      const keys = keysOf(name);
      account = new RedisAccount({
        store: new RedisStore({
          ...{ client, writer, keys, retentionMs, awaitsReplicas },
          confirmPrimary: (key) => confirmPrimary(redis, key),
          seal: keyringOf(name).events,
          onLocked: () => observer?.onLocked?.({ account: name, what: "event" }),
        }),
        wakeUps,
        channel: keys.wakeUp,
        onState: (state, error) => observer?.onFeed?.({ account: name, state, error }),
      });
      accounts.set(name, account);
    }
    return account;
  }

  return {
    durable: true,

    async append(account, entry) {
      return accountOf(account).store.append(entry);
    },

    async noteHold(account, externalId, call, isHolding) {
      await accountOf(account).store.noteHold(externalId, call, isHolding);
    },

    async snapshot(account, kind, externalId) {
      return accountOf(account).store.snapshot({ kind, externalId });
    },

    async read(account, topic, after, options) {
      if (options.signal.aborted) throw errorOfAbort(options.signal);
      return readOn(accountOf(account), topic, after, options);
    },

    async history(account, kind, externalId, limit, before) {
      return accountOf(account).store.history({ kind, externalId }, limit, before);
    },

    async cursorBefore(account, count) {
      return accountOf(account).store.cursorBefore(count);
    },

    async addDeadLetter(account, letter) {
      if (closed) throw closedError();
      await letters.addDeadLetter(keysOf(account), keyringOf(account).deadLetters, letter);
    },

    async *deadLetters(account, options) {
      const { deadLetters: seal } = keyringOf(account);
      for await (const letter of letters.of(keysOf(account), seal, options)) {
        if (letter.body === undefined) observer?.onLocked?.({ account, what: "dead_letter" });
        yield letter;
      }
    },

    async deadLetter(account, id) {
      const letter = await letters.find(keysOf(account), keyringOf(account).deadLetters, id);
      if (letter && letter.body === undefined) {
        observer?.onLocked?.({ account, what: "dead_letter" });
      }
      return letter;
    },

    async countDeadLetters(account) {
      return letters.count(keysOf(account));
    },

    async removeDeadLetter(account, id) {
      return letters.removeDeadLetter(keysOf(account), id);
    },

    async unfinished(account, forMs, limit) {
      return accountOf(account).store.unfinished(forMs, limit);
    },

    async dismiss(account, unfinished) {
      await accountOf(account).store.dismiss(unfinished);
    },

    async close() {
      closed = true;
      for (const account of accounts.values()) account.close(closedError());
      wakeUps.close();
      writer.close();
    },
  };
}

function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the event log is closed", { reason: "LOG_CLOSED" });
}

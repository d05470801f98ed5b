import { randomBytes } from "node:crypto";
import { ByAge } from "../collections/by-age.ts";
import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { isKind } from "../model/kinds.ts";
import type { Report } from "../report.ts";
import type { Keyring } from "../secrets/keyring.ts";
import { type Bounds, type Cursor, placeIn } from "../stores/cursor.ts";
import {
  type AccountKernel,
  type Commit,
  type Committed,
  filledIn,
  type Listener,
  type NewEvent,
  type RecordChange,
  type Row,
  type RowPage,
} from "../stores/kernel.ts";
import { activeSpan } from "../telemetry/tracing/tracing.ts";
import { Change, Draft } from "./change.ts";
import { type Follower, Hub } from "./hub.ts";
import type { Ages } from "./intents.ts";
import type { Topic } from "./log.ts";
import { isBlank, keyOfTopic, recordIn, UnreadableRecord } from "./record.ts";
import { RecordCache } from "./record-cache.ts";
import { readEvent, rememberTrace, writeEvent } from "./stored-event.ts";
import type { Turns } from "./turns.ts";

/** A committed step. */
export interface Done<T> {
  readonly result: T;
  /** The decision that was committed; its events have their cursors. */
  readonly change: Change;
  /** The store's clock when it was committed; see `Change.now`. */
  readonly nowMs: number;
}

export interface AccountOptions extends Ages {
  /** Default: nothing is reported. */
  readonly report?: Report | undefined;
  /**
   * Encrypts the secrets of an account's events, and its dead letters. Undefined for a store that is
   * this process's memory, which holds the secrets anyway: nothing is encrypted.
   */
  readonly keyringOf: ((account: string) => Sealing) | undefined;
}

type Sealing = Pick<Keyring, "events" | "deadLetters">;

/** Some stored events of a topic, in order. At `upTo === bounds.tail` nothing more was stored. */
export interface Page extends Omit<RowPage, "rows"> {
  readonly events: readonly Event[];
}

/** One account's ledger in this process: decides steps on its records, and reads its log. */
export class LedgerAccount {
  readonly kernel: AccountKernel;
  /** Those of the process: all its readers share its event loop. */
  readonly turns: Turns;
  readonly keyring: Sealing | undefined;
  readonly #name: string;
  readonly #options: AccountOptions;
  readonly #cache = new RecordCache();
  /**
   * The newest events that this process stored, with their bytes, by cursor. Its readers, mostly live
   * ones, get these objects, which spares decoding and decrypting them again.
   */
  readonly #recent = new ByAge<{ readonly event: Event; readonly bytes: Uint8Array }>();
  /** Events whose commit is under way, by their bytes: the store may show them before it answers. */
  readonly #underWay = new ByAge<Event, Uint8Array>();
  /** The last step of each record that has one under way. */
  readonly #steps = new ByAge<Promise<unknown>>();
  readonly #hub = new Hub();
  #watching: Promise<() => void> | undefined;

  constructor(name: string, kernel: AccountKernel, options: AccountOptions, turns: Turns) {
    this.kernel = kernel;
    this.turns = turns;
    this.keyring = options.keyringOf?.(name);
    this.#name = name;
    this.#options = options;
  }

  /**
   * Has the store tell its clock, unless it has. By a machine's clock that is wrong, an event would be
   * dated wrongly, and a call that runs taken for lost.
   */
  async hearClock(): Promise<void> {
    if (!this.kernel.hasClock) await this.kernel.read([]);
  }

  /**
   * Decides a step on these records and commits it. It supposes that a record is as this process left
   * it, or new; if not, it decides again on what the store has. Steps on one record wait for each
   * other.
   * @throws GatewayError UNAVAILABLE when the store is out of reach: the step may have happened
   */
  transact<T>(keys: readonly string[], decide: (change: Change) => T): Promise<Done<T>> {
    const before = keys.flatMap((key) => this.#steps.get(key) ?? []);
    const step =
      before.length === 0
        ? this.#transact(keys, decide)
        : Promise.allSettled(before).then(() => this.#transact(keys, decide));
    for (const key of keys) this.#steps.set(key, step);
    const over = () => {
      for (const key of keys) if (this.#steps.get(key) === step) this.#steps.delete(key);
    };
    step.then(over, over);
    return step;
  }

  async #transact<T>(keys: readonly string[], decide: (change: Change) => T): Promise<Done<T>> {
    await this.hearClock();
    /** The store's clock when it answered how the records are. */
    let foundMs: number | undefined;
    for (let tries = 0; tries < maxTries; tries++) {
      const { change, result } = this.#decided(keys, decide);
      // The store has just said what this rests on, at one instant, and there is nothing to store.
      if (change.isRead && foundMs !== undefined) return { result, change, nowMs: foundMs };
      const commit = this.#commitOf(change);
      const committed = await this.#commit(commit, keys);
      if (committed.kind === "conflict") {
        for (const found of committed.records) this.#cache.found(found);
        foundMs = committed.nowMs;
      } else {
        this.#remember(change, commit, committed);
        return { result, change, nowMs: committed.nowMs };
      }
    }
    const details = { reason: "STORE_UNAVAILABLE", retryAfterMs: 1_000 } as const;
    throw new GatewayError(
      "UNAVAILABLE",
      "the store's records change too fast: try again",
      details,
    );
  }

  /** Decides on the records as they are cached. */
  #decided<T>(keys: readonly string[], decide: (change: Change) => T) {
    try {
      const drafts = keys.map((key) => {
        const was = this.#cache.get(key);
        const value = this.understood(key, () => recordIn(was.text));
        return new Draft(key, value, was);
      });
      const token = `${tokenBase}${(commits++).toString(36)}`;
      const change = new Change(token, this.kernel.nowMs(), drafts, this.#options);
      return { change, result: this.understood(keys[0] ?? "", () => decide(change)) };
    } catch (error) {
      // The store may have another one by the next step.
      for (const key of keys) this.#cache.forget(key);
      throw error;
    }
  }

  /**
   * Reads a stored record, or decides on it.
   * @throws UnreadableRecord when it is not as this gateway expects it
   */
  understood<T>(key: string, read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof GatewayError && !(error instanceof UnreadableRecord)) throw error;
      const unreadable =
        error instanceof UnreadableRecord ? error : new UnreadableRecord(key, error);
      this.#onUnreadable(unreadable);
      throw unreadable;
    }
  }

  #onUnreadable({ key: record, cause: error }: UnreadableRecord): void {
    this.#options.report?.("unreadable", { account: this.#name, record, error });
  }

  /** Reports what could not be decrypted: it is returned without its secrets. */
  onLocked(what: "event" | "dead_letter"): void {
    this.#options.report?.("locked", { account: this.#name, what });
  }

  async #commit(commit: Commit, keys: readonly string[]): Promise<Committed> {
    try {
      return await this.kernel.commit(commit);
    } catch (error) {
      // It may have happened.
      for (const key of keys) this.#cache.forget(key);
      throw error;
    } finally {
      for (const { bytes } of commit.events) this.#underWay.delete(bytes);
    }
  }

  #commitOf(change: Change): Commit {
    const { token, indexes, isRead, trace } = change;
    const events = change.events.map(({ topic, event }): NewEvent => {
      rememberTrace(event, trace);
      const added = { topic, bytes: writeEvent(this.keyring?.events, event, trace) };
      if (this.#watching) this.#underWay.set(added.bytes, event);
      return added;
    });
    const records = change.drafts.map((draft): RecordChange => {
      const { key, was, expected, flags, keepMs, isPinned } = draft;
      const text = isBlank(draft.value) ? "" : JSON.stringify(draft.value);
      const attachments = new Map<string, Uint8Array | undefined>();
      for (const [name, part] of draft.attachments) {
        attachments.set(name, typeof part === "number" ? events[part]?.bytes : part);
      }
      const changed = text === was.text ? undefined : text;
      return {
        key,
        was: was.version,
        expected,
        text: changed,
        attachments,
        flags,
        keepMs,
        isPinned,
      };
    });
    return { token, records, events, indexes, isRead };
  }

  #remember(
    change: Change,
    commit: Commit,
    { cursors, nowMs, instant, texts }: Extract<Committed, { kind: "committed" }>,
  ): void {
    const places = cursors.map(placeIn);
    for (const [n, draft] of change.drafts.entries()) {
      const text = commit.records[n]?.text;
      if (text === undefined) continue;
      const now = texts?.[n] ?? filledIn(text, commit.token, places, nowMs, instant);
      this.#cache.wrote(draft, commit.token, now);
    }
    for (const [n, { event }] of change.events.entries()) {
      event.cursor = cursors[n] ?? "";
      const bytes = commit.events[n]?.bytes;
      if (bytes) this.#recent.set(event.cursor, { event, bytes });
    }
    this.#recent.fromOldest(
      (oldest) => this.#recent.size > maxRecent && this.#recent.delete(oldest),
    );
  }

  /**
   * The event of a row. After a failover it may have the cursor of an own one that was lost, and two
   * events of one millisecond may have equal bytes: it is an own one only if both agree.
   */
  eventOf({ cursor, bytes }: Row): Event {
    const recent = this.#recent.get(cursor);
    const isOwn = recent && Buffer.compare(recent.bytes, bytes) === 0;
    const own = this.#underWay.get(bytes) ?? (isOwn ? recent.event : undefined);
    if (own) {
      own.cursor = cursor;
      return own;
    }
    const { event, locked } = readEvent(this.keyring?.events, bytes);
    if (locked) this.onLocked("event");
    event.cursor = cursor;
    return event;
  }

  /** The events of these rows without those that cannot be read, which hold up no reader. */
  eventsOf(rows: readonly Row[]): Event[] {
    return rows.flatMap((row) => {
      try {
        return [this.eventOf(row)];
      } catch (error) {
        this.#onUnreadable(new UnreadableRecord(`event ${row.cursor}`, error));
        return [];
      }
    });
  }

  /**
   * Attaches a follower. Once the promise resolves, it receives every newly stored event; it may
   * also receive earlier ones. Returns a function that detaches it.
   */
  async follow(topic: Topic, follower: Follower): Promise<() => void> {
    const detach = this.#hub.follow(topic, follower);
    // The watch serves all followers, so it must not run in the span of the first one.
    this.#watching ??= activeSpan.exit(() => this.kernel.watch(this.#listener()));
    const watching = this.#watching;
    try {
      await watching;
    } catch (error) {
      // Another follower may have begun the next one already.
      if (this.#watching === watching) this.#watching = undefined;
      detach();
      throw error;
    }
    return () => {
      detach();
      if (this.#hub.isEmpty) this.#unwatch();
    };
  }

  async bounds(): Promise<Bounds> {
    return (await this.kernel.page(undefined, undefined, 0)).bounds;
  }

  /** At most `limit` events after a cursor, or from the oldest kept. */
  async page(topic: Topic, after: Cursor | undefined, limit: number): Promise<Page> {
    const { rows, upTo, bounds } = await this.kernel.page(keyOfTopic(topic), after, limit);
    return { events: this.eventsOf(rows), upTo, bounds };
  }

  close(error: Error): void {
    this.#unwatch();
    this.#hub.fail(error);
  }

  #listener(): Listener {
    return {
      row: (row) => {
        for (const event of this.eventsOf([row])) {
          if (isKind(event.kind)) this.#hub.publish(event);
        }
      },
      fail: (error) => {
        this.#watching = undefined;
        this.#hub.fail(error);
      },
    };
  }

  #unwatch(): void {
    const watching = this.#watching;
    this.#watching = undefined;
    // Who began to follow hears why it failed.
    watching?.then((end) => end()).catch(() => {});
  }
}

/**
 * Begins each token of a commit, which is of letters and digits: nobody can guess one, so no text from
 * outside contains it.
 */
const tokenBase = randomBytes(9).toString("hex");
let commits = 0;

/** Live readers are hardly ever further behind than a page of the feed. */
const maxRecent = 256;

/** Conflicts come from other processes, which all make progress: so many in a row mean a fault. */
const maxTries = 100;

import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Event, EventSource } from "../../gen/payments/v1/event_pb.ts";
import type { Kind } from "../../model/kinds.ts";
import type { Seal } from "../../secrets/seal.ts";
import type { StoreThread } from "../../sqlite/store-thread.ts";
import { assertOf, type Bounds, newEpoch, placeOf } from "../cursor.ts";
import { readFacts, storedFact } from "../facts.ts";
import { type Follower, Hub } from "../hub.ts";
import type { Appended, Cursor, Entry, Snapshot, Topic, Unfinished } from "../log.ts";
import { setState } from "../payment-state.ts";
import { readEvent, writeEvent } from "../stored-event.ts";
import type { Page, StoredLog } from "../tail.ts";
import { rememberTrace } from "../trace-of.ts";
import { memberOf, ofMember } from "../unfinished.ts";
import type {
  AppendedRow,
  BoundsRow,
  EventRow,
  NewRow,
  PageOf,
  PageRow,
  SnapshotRow,
  StateRow,
  SubjectRow,
  UnfinishedRow,
} from "./rows.ts";

export interface SqliteAccountOptions {
  readonly thread: StoreThread;
  readonly name: string;
  readonly retentionMs: number;
  readonly now: () => number;
  /** Encrypts the secrets of the account's events. */
  readonly seal: Seal;
  /** The secret fields of an event could not be decrypted: it is returned without them. */
  readonly onLocked: () => void;
}

interface Identity {
  readonly id: number;
  readonly epoch: string;
}

/**
 * One account's log in the embedded store. Only this process writes to it, so live events come
 * straight from `append`: each is published once it is on the disk, in the order of the log.
 */
export class SqliteAccount implements StoredLog {
  readonly #options: SqliteAccountOptions;
  readonly #hub = new Hub();
  #known: Promise<Identity> | undefined;

  constructor(options: SqliteAccountOptions) {
    this.#options = options;
  }

  /** The account's row id in the store. */
  async id(): Promise<number> {
    return (await this.#identity()).id;
  }

  async append(entry: Entry): Promise<Appended> {
    const { seal, retentionMs } = this.#options;
    const { id: account, epoch } = await this.#identity();
    const nowMs = this.#options.now();
    // A copy, since the writer keeps its own event; all readers share this one.
    const event: Event = { ...entry.event };
    event.receivedAt = timestampFromMs(nowMs);
    const { kind, externalId, subjectId, operation, operationId, rank, status } = entry;
    const row: NewRow = {
      ...{ account, kind, externalId, subjectId, operation, operationId, rank, status },
      isCallback: entry.source === EventSource.CALLBACK,
      digest: entry.digest,
      identity: entry.identity,
      ...{ nowMs, retentionMs },
      bytes: writeEvent(seal, event, entry.trace),
      fact: storedFact(entry, nowMs),
      call: entry.call,
    };
    return this.#run("append", [row], ({ outcome, place, state, conflict }: AppendedRow) => {
      if (outcome === "duplicate") return { outcome, conflict };
      event.cursor = cursorOf(place, epoch);
      setState(event, state);
      rememberTrace(event, entry.trace);
      this.#hub.publish(event);
      return { outcome, event, conflict };
    });
  }

  async snapshot(kind: Kind, externalId: string): Promise<Snapshot | undefined> {
    const { id: account, epoch } = await this.#identity();
    const of: SubjectRow = { account, kind, externalId };
    const sinceMs = this.#options.now() - 2 * this.#options.retentionMs;
    const found = this.#run<SnapshotRow | undefined>("snapshot", [of, sinceMs]);
    const bounds = this.bounds();
    const [row, { floor, tail }] = await Promise.all([found, bounds]);
    if (!row) return undefined;
    const last = cursorOf(row.last, epoch);
    const states = row.states.map((state) => this.#stateOf(state, epoch));
    // A reader cannot resume from an event that is no longer kept.
    return { states, facts: readFacts(row.facts, row), cursor: last >= floor ? last : tail };
  }

  async noteHold(externalId: string, call: string, isHolding: boolean): Promise<void> {
    const { now, retentionMs } = this.#options;
    const since = now() - 2 * retentionMs;
    await this.#run("noteHold", [await this.id(), externalId, call, isHolding, now(), since]);
  }

  async history(kind: Kind, externalId: string, limit: number, before?: Cursor): Promise<Event[]> {
    const { id: account, epoch } = await this.#identity();
    if (before !== undefined) assertOf(before, epoch);
    const of: SubjectRow = { account, kind, externalId };
    const end = before?.slice(0, placeLength);
    const rows = await this.#run<EventRow[]>("history", [of, this.#oldest(), limit, end]);
    return rows.map((row) => this.#eventOf(row, epoch));
  }

  async cursorBefore(count: number): Promise<Cursor> {
    const { id, epoch } = await this.#identity();
    return this.#run("placeBefore", [id, this.#oldest(), count], (place: string) =>
      cursorOf(place, epoch),
    );
  }

  async unfinished(forMs: number, limit: number): Promise<Unfinished[]> {
    const id = await this.id();
    const nowMs = this.#options.now();
    const sinceMs = nowMs - 2 * this.#options.retentionMs;
    const args = [id, sinceMs, nowMs - forMs, limit];
    const rows = await this.#run<UnfinishedRow[]>("unfinished", args);
    return rows.map(({ member, sinceMs: since }) => ofMember(member, nowMs - since));
  }

  async dismiss(unfinished: readonly Unfinished[]): Promise<void> {
    const members = unfinished.flatMap((one) => memberOf(one) ?? []);
    if (members.length > 0) await this.#run("dismiss", [await this.id(), members]);
  }

  async follow(topic: Topic, follower: Follower): Promise<() => void> {
    return this.#hub.follow(topic, follower);
  }

  async bounds(): Promise<Bounds> {
    const { id, epoch } = await this.#identity();
    return this.#run("bounds", [id, this.#oldest()], (row: BoundsRow) => boundsOf(row, epoch));
  }

  async page(topic: Topic, after: Cursor | undefined, limit: number): Promise<Page> {
    const { id: account, epoch } = await this.#identity();
    const of: PageOf = {
      account,
      ...("externalId" in topic
        ? { subject: { kind: topic.kind, externalId: topic.externalId }, kinds: [] }
        : { kinds: topic.kinds }),
      ...(after !== undefined && { after: after.slice(0, placeLength) }),
      limit,
      oldest: this.#oldest(),
    };
    const page = await this.#run<PageRow>("page", [of]);
    return {
      events: page.events.map((row) => this.#eventOf(row, epoch)),
      upTo: cursorOf(page.upTo, epoch),
      bounds: boundsOf(page.bounds, epoch),
    };
  }

  close(error: Error): void {
    this.#hub.fail(error);
  }

  #identity(): Promise<Identity> {
    const { thread, name } = this.#options;
    this.#known ??= thread
      .run<Identity>("events", "account", [name, newEpoch()])
      .catch((error: unknown) => {
        this.#known = undefined;
        throw error;
      });
    return this.#known;
  }

  #run<T, M = T>(operation: string, args: readonly unknown[], map?: (row: T) => M): Promise<M> {
    return this.#options.thread.run("events", operation, args, map);
  }

  /** Events before this place are no longer kept. */
  #oldest(): string {
    const { now, retentionMs } = this.#options;
    return placeOf({ ms: Math.max(now() - retentionMs, 0), seq: 0 });
  }

  #eventOf({ place, bytes, state }: EventRow, epoch: string): Event {
    const { event, locked } = readEvent(this.#options.seal, bytes);
    if (locked) this.#options.onLocked();
    event.cursor = cursorOf(place, epoch);
    setState(event, state);
    return event;
  }

  #stateOf({ facts: { since, place, ...facts }, bytes }: StateRow, epoch: string) {
    const event = this.#eventOf({ place, bytes, state: 0 }, epoch);
    return { ...facts, since: cursorOf(since, epoch), event };
  }
}

const placeLength = 18;

function cursorOf(place: string, epoch: string): Cursor {
  return `${place}-${epoch}`;
}

function boundsOf({ floor, tail }: BoundsRow, epoch: string): Bounds {
  return { epoch, floor: cursorOf(floor, epoch), tail: cursorOf(tail, epoch) };
}

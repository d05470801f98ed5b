import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Deque } from "../../collections/deque.ts";
import { type Event, EventKind, EventSource } from "../../gen/payments/v1/event_pb.ts";
import type { Kind } from "../../model/kinds.ts";
import {
  assertOf,
  type Bounds,
  beginning,
  encodeCursor,
  newEpoch,
  nextPosition,
  type Position,
} from "../cursor.ts";
import {
  foldIn,
  type Kept,
  noteWords,
  readFacts,
  storedFact,
  takeHold,
  withHold,
} from "../facts.ts";
import { type Follower, Hub } from "../hub.ts";
import type {
  Appended,
  Cursor,
  Entry,
  Facts,
  OperationState,
  Snapshot,
  Topic,
  Unfinished,
} from "../log.ts";
import { merge, stateOf } from "../merge.ts";
import { setStateAfter } from "../payment-state.ts";
import { Seen } from "../seen.ts";
import type { Page, StoredLog } from "../tail.ts";
import { isAbout, subjectKey } from "../topics.ts";
import { rememberTrace } from "../trace-of.ts";
import { maxUnfinished, memberOf, ofMember } from "../unfinished.ts";

export interface MemoryAccountOptions {
  readonly retentionMs: number;
  readonly maxEvents: number;
  readonly now: () => number;
}

interface Stored {
  readonly event: Event;
  readonly atMs: number;
}

/** What is known of one external id. It is kept longer than the events. */
interface Known extends Kept {
  /**
   * With the keys of their operations. A list, because hardly any external id has more than one.
   */
  states: readonly KnownState[];
  /** Cursor of its last event; undefined while only a hold is noted. */
  last: Cursor | undefined;
  touchedMs: number;
}

interface KnownState {
  readonly key: string;
  state: OperationState;
}

/** Most events scanned for one page of an account: a rare kind must not block other calls. */
const maxScan = 4_096;

/** One account's log in memory. Each method does all its work before it returns. */
export class MemoryAccount implements StoredLog {
  readonly #options: MemoryAccountOptions;
  readonly #epoch = newEpoch();
  readonly #hub = new Hub();
  readonly #stored = new Deque<Stored>();
  /** The same events, by payment and payout. */
  readonly #bySubject = new Map<string, Deque<Event>>();
  /** In the order in which they were last touched. */
  readonly #known = new Map<string, Known>();
  readonly #callbackDigests: Seen;
  readonly #callbackIdentities: Seen;
  readonly #identities: Seen;
  /**
   * Members of unfinished operations, with the time in milliseconds when they were recorded, oldest
   * first.
   */
  readonly #unfinished = new Map<string, number>();
  #position: Position = beginning;
  #floor = encodeCursor(beginning, this.#epoch);
  #tail = this.#floor;

  constructor(options: MemoryAccountOptions) {
    this.#options = options;
    const seen = () => new Seen({ lastsMs: options.retentionMs, limit: options.maxEvents * 10 });
    this.#callbackDigests = seen();
    this.#callbackIdentities = seen();
    this.#identities = seen();
  }

  append(entry: Entry): Appended {
    const now = this.#options.now();
    this.#sweep(now);
    const key = subjectKey(entry.kind, entry.externalId);
    const known = this.#known.get(key);
    const fact = storedFact(entry, now);
    const [operation] = fact;
    const held = known?.states.find(({ key }) => key === operation);
    const { replaces, late, conflict } = merge(held?.state, entry);
    const changesHold = known !== undefined && takeHold(known, fact, entry.call);
    if (this.#isDuplicate(entry, late) && !changesHold) {
      return { outcome: "duplicate", conflict: false };
    }

    const event = this.#store(entry, key, now);
    this.#remember(entry, now);
    const touched = this.#touch(key, now);
    touched.last = event.cursor;
    if (replaces) {
      const state = stateOf(entry, event, held?.state.since ?? event.cursor);
      if (held) held.state = state;
      else touched.states = touched.states.concat({ key: operation, state });
      for (const gone of foldIn(touched, fact)) {
        touched.states = touched.states.filter(({ key }) => key !== gone);
        touched.folded++;
      }
    } else noteWords(touched, fact);
    setStateAfter(event, factsOf(touched));
    if (replaces) this.#noteUnfinished(entry, now);
    this.#trim(now);
    this.#hub.publish(event);
    return { outcome: "stored", event, conflict };
  }

  snapshot(kind: Kind, externalId: string): Snapshot | undefined {
    this.#sweep(this.#options.now());
    const known = this.#known.get(subjectKey(kind, externalId));
    if (known?.last === undefined) return undefined;
    const states = known.states
      .map(({ state }) => state)
      .sort((a, b) => (a.event.cursor < b.event.cursor ? -1 : 1));
    // A reader cannot resume from an event that is no longer kept.
    const cursor = known.last >= this.#floor ? known.last : this.#tail;
    return { states, facts: factsOf(known), cursor };
  }

  noteHold(externalId: string, call: string, isHolding: boolean): void {
    const now = this.#options.now();
    this.#sweep(now);
    const known = this.#touch(subjectKey(EventKind.PAYMENT, externalId), now);
    known.holds = withHold(known.holds, call, isHolding);
  }

  history(kind: Kind, externalId: string, limit: number, before?: Cursor): Event[] {
    this.#sweep(this.#options.now());
    if (before !== undefined) assertOf(before, this.#epoch);
    const events = this.#bySubject.get(subjectKey(kind, externalId));
    if (!events) return [];
    const end =
      before === undefined ? events.length : events.findFirst(({ cursor }) => cursor >= before);
    return events.slice(end - Math.max(limit, 0), end);
  }

  cursorBefore(count: number): Cursor {
    this.#sweep(this.#options.now());
    const at = this.#stored.length - Math.max(count, 0);
    return at > 0 ? (this.#stored.at(at - 1)?.event.cursor ?? this.#floor) : this.#floor;
  }

  unfinished(forMs: number, limit: number): Unfinished[] {
    const now = this.#options.now();
    this.#sweep(now);
    const found: Unfinished[] = [];
    for (const [member, sinceMs] of this.#unfinished) {
      if (found.length >= limit || sinceMs > now - forMs) break;
      found.push(ofMember(member, now - sinceMs));
    }
    return found;
  }

  dismiss(unfinished: readonly Unfinished[]): void {
    for (const one of unfinished) this.#unfinished.delete(memberOf(one) ?? "");
  }

  async follow(topic: Topic, follower: Follower): Promise<() => void> {
    return this.#hub.follow(topic, follower);
  }

  async bounds(): Promise<Bounds> {
    return this.#bounds();
  }

  async page(topic: Topic, after: Cursor | undefined, limit: number): Promise<Page> {
    this.#sweep(this.#options.now());
    const isBehind = (event: Event) => after === undefined || event.cursor > after;
    if ("externalId" in topic) {
      const all = this.#bySubject.get(subjectKey(topic.kind, topic.externalId));
      if (!all) return this.#page([], undefined);
      const from = all.findFirst(isBehind);
      const events = all.slice(from, from + limit);
      return this.#page(events, from + limit < all.length ? events.at(-1) : undefined);
    }
    const events: Event[] = [];
    let at = this.#stored.findFirst(({ event }) => isBehind(event));
    const end = Math.min(at + maxScan, this.#stored.length);
    for (; at < end && events.length < limit; at++) {
      const event = this.#stored.at(at)?.event;
      if (event && isAbout(topic, event)) events.push(event);
    }
    return this.#page(
      events,
      at < this.#stored.length ? this.#stored.at(at - 1)?.event : undefined,
    );
  }

  close(error: Error): void {
    this.#hub.fail(error);
  }

  #page(events: Event[], cutAt: Event | undefined): Page {
    return { events, upTo: cutAt?.cursor ?? this.#tail, bounds: this.#bounds() };
  }

  #bounds(): Bounds {
    return { epoch: this.#epoch, floor: this.#floor, tail: this.#tail };
  }

  #noteUnfinished(entry: Entry, now: number): void {
    const member = memberOf(entry);
    if (member === undefined) return;
    if (entry.rank === 2) this.#unfinished.delete(member);
    else if (!this.#unfinished.has(member)) this.#unfinished.set(member, now);
    const [oldest] = this.#unfinished.keys();
    if (this.#unfinished.size > maxUnfinished && oldest) this.#unfinished.delete(oldest);
  }

  #isDuplicate(entry: Entry, late: boolean): boolean {
    if (entry.source !== EventSource.CALLBACK) return late || this.#identities.has(entry.identity);
    return (
      this.#callbackIdentities.has(entry.identity) ||
      (entry.digest !== undefined && this.#callbackDigests.has(entry.digest))
    );
  }

  #remember({ source, identity, digest }: Entry, now: number): void {
    this.#identities.add(identity, now);
    if (source !== EventSource.CALLBACK) return;
    this.#callbackIdentities.add(identity, now);
    if (digest !== undefined) this.#callbackDigests.add(digest, now);
  }

  #store(entry: Entry, key: string, now: number): Event {
    // A copy, since the writer keeps its own event. All readers share the payment or payout in it,
    // and nobody changes that.
    const event: Event = { ...entry.event };
    this.#position = nextPosition(this.#position, now);
    event.cursor = this.#tail = encodeCursor(this.#position, this.#epoch);
    event.receivedAt = timestampFromMs(now);
    rememberTrace(event, entry.trace);
    this.#stored.push({ event, atMs: now });
    const ofSubject = this.#bySubject.get(key) ?? new Deque<Event>();
    ofSubject.push(event);
    this.#bySubject.set(key, ofSubject);
    return event;
  }

  /**
   * Returns what is known of an external id, adding it if necessary, and makes it the last one
   * touched.
   */
  #touch(key: string, now: number): Known {
    const known = this.#known.get(key) ?? {
      ...{ states: [], facts: [], holds: [], folded: 0 },
      ...{ last: undefined, touchedMs: now },
    };
    known.touchedMs = now;
    this.#known.delete(key);
    this.#known.set(key, known);
    return known;
  }

  /** Removes what is past its retention. */
  #sweep(now: number): void {
    this.#trim(now);
    for (const seen of [this.#callbackDigests, this.#callbackIdentities, this.#identities]) {
      seen.sweep(now);
    }
    const { retentionMs, maxEvents } = this.#options;
    for (const [member, sinceMs] of this.#unfinished) {
      if (sinceMs > now - 2 * retentionMs) break;
      this.#unfinished.delete(member);
    }
    for (const [key, { touchedMs }] of this.#known) {
      if (touchedMs >= now - 2 * retentionMs && this.#known.size <= maxEvents) return;
      this.#known.delete(key);
    }
  }

  #trim(now: number): void {
    const { retentionMs, maxEvents } = this.#options;
    for (;;) {
      const oldest = this.#stored.at(0);
      if (!oldest) return;
      if (oldest.atMs >= now - retentionMs && this.#stored.length <= maxEvents) return;
      this.#stored.shift();
      this.#floor = oldest.event.cursor;
      const key = subjectKey(oldest.event.kind, oldest.event.externalId);
      const ofSubject = this.#bySubject.get(key);
      ofSubject?.shift();
      if (ofSubject?.length === 0) this.#bySubject.delete(key);
    }
  }
}

function factsOf({ facts, holds, folded }: Kept): Facts {
  return readFacts(facts, { held: holds.length > 0, folded });
}

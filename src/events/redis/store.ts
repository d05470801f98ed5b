import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../../errors.ts";
import { type Event, EventSource } from "../../gen/payments/v1/event_pb.ts";
import type { PaymentState } from "../../gen/payments/v1/payment_pb.ts";
import { type Kind, kinds } from "../../model/kinds.ts";
import { ask, storeAway } from "../../redis/ask.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import { loadScript } from "../../redis/script.ts";
import type { Writer } from "../../redis/writer.ts";
import type { Seal } from "../../secrets/seal.ts";
import { assertOf, assertReadable, cursorExpired, decodeCursor, newEpoch } from "../cursor.ts";
import {
  factsOfStates,
  maxFailures,
  maxHolds,
  noFacts,
  readFacts,
  type StoredFact,
  storedFact,
} from "../facts.ts";
import type {
  Appended,
  Cursor,
  Entry,
  Facts,
  OperationState,
  Rank,
  Snapshot,
  Unfinished,
} from "../log.ts";
import { stateKey } from "../merge.ts";
import { setState, setStateAfter } from "../payment-state.ts";
import { readEvent, writeEvent } from "../stored-event.ts";
import type { Page } from "../tail.ts";
import { rememberTrace } from "../trace-of.ts";
import { maxUnfinished, memberOf, ofMember } from "../unfinished.ts";
import { OwnEvents } from "./own-events.ts";
import { cursorOf, idOf } from "./place.ts";

export interface RedisStoreOptions {
  readonly client: RedisClient;
  readonly writer: Writer;
  readonly keys: AccountKeys;
  readonly retentionMs: number;
  /**
   * Whether replicas must hold an event before it is acknowledged. Then it is not shown earlier
   * either, and a duplicate writes the tail of the log again, so that a WAIT after it covers the
   * first event.
   */
  readonly awaitsReplicas: boolean;
  /** @throws GatewayError UNAVAILABLE unless the client is known to read from the primary */
  readonly confirmPrimary: (key: string) => Promise<void>;
  /** Encrypts the secrets of the account's events. */
  readonly seal: Seal;
  /** The secret fields of an event could not be decrypted: it is returned without them. */
  readonly onLocked: () => void;
}

/** A page of the events that may be shown: those up to the log's mark (open-log.lua). */
export interface StoredPage extends Page {
  /** The last stored event. It is after `bounds.tail` while it may not be shown yet. */
  readonly stored: Cursor;
}

/** One payment or payout. */
export interface Subject {
  readonly kind: Kind;
  readonly externalId: string;
}

/** How often a snapshot is read again if its last event may not be shown yet. */
const maxTries = 5;

/** The first event of a millisecond gets a random `seq` below this; see append-event.lua. */
const firstSeqs = 0x1_0000;

/** One account's log in Redis. Each operation on the stored data is one atomic step. */
export class RedisStore {
  readonly #options: RedisStoreOptions;
  #settling: Promise<void> | undefined;
  #nextSettling: Promise<void> | undefined;
  #showing: Promise<void> | undefined;
  readonly #own = new OwnEvents();
  #nextShowing: { readonly epoch: string; id: string; shown: Promise<void> } | undefined;

  constructor(options: RedisStoreOptions) {
    this.#options = options;
  }

  async append(entry: Entry): Promise<Appended> {
    const { keys, writer, retentionMs, awaitsReplicas, seal } = this.#options;
    // A copy, since the writer keeps its own event; all readers share this one.
    const event: Event = { ...entry.event, receivedAt: timestampFromMs(Date.now()) };
    const bytes = writeEvent(seal, event, entry.trace);
    const answer = (await writer.run(
      appendEvent,
      [
        keys.log,
        keys.events,
        keys.topic(...named(entry)),
        keys.state(...named(entry)),
        keys.seenIdentity(entry.identity),
        keys.unfinished,
        ...(entry.digest === undefined ? [] : [keys.seenBody(entry.digest)]),
      ],
      [
        bytes,
        entry.source === EventSource.CALLBACK ? "c" : "o",
        stateKey(entry),
        entry.operationId,
        `${entry.rank}`,
        entry.status,
        `${retentionMs}`,
        newEpoch(),
        `${Math.floor(Math.random() * firstSeqs)}`,
        keys.wakeUp,
        awaitsReplicas ? "1" : "0",
        memberOf(entry) ?? "",
        `${maxUnfinished}`,
        JSON.stringify(storedFact(entry, 0)),
        `${maxFailures}`,
        entry.call ?? "",
      ],
    )) as [
      outcome: Appended["outcome"],
      epoch: string,
      id: string,
      conflict?: 0 | 1,
      facts?: string,
    ];
    const [outcome, epoch, id, conflict, facts = ""] = answer;
    // The event is safely stored. If the mark cannot be moved now, a reader moves it later.
    if (awaitsReplicas) await this.#show(epoch, id).catch(() => {});
    if (outcome === "duplicate") return { outcome, conflict: false };
    event.cursor = cursorOf(id, epoch);
    setStateAfter(event, factsOf(facts));
    rememberTrace(event, entry.trace);
    this.#own.add({ event, bytes, facts });
    return { outcome, event, conflict: conflict === 1 };
  }

  /**
   * Events after a cursor, or from the oldest kept: all of the account, or those of a subject.
   * @param shown cursor up to which this process's feed has delivered everything
   * @throws GatewayError OUT_OF_RANGE when the cursor cannot be resumed from
   */
  async read(
    after: Cursor | undefined,
    limit: number,
    subject?: Subject,
    shown?: Cursor,
  ): Promise<StoredPage> {
    try {
      return await this.#read(after, limit, subject, shown);
    } catch (error) {
      if (!(error instanceof GatewayError) || error.code !== "OUT_OF_RANGE") throw error;
      // This error is final for a client, so an old primary, or one that started empty, must not
      // cause it.
      await this.#options.confirmPrimary(this.#options.keys.log);
      return await this.#read(after, limit, subject, shown);
    }
  }

  async #read(
    after: Cursor | undefined,
    limit: number,
    subject?: Subject,
    shown?: Cursor,
  ): Promise<StoredPage> {
    const place = shown ? [idOf(shown), decodeCursor(shown).epoch] : ["", ""];
    const { client, keys } = this.#options;
    const [epoch, floor, mark, known, upTo, tail, ...events] = (await ask(client, () =>
      readEvents.runBuffer(
        client,
        [keys.log, keys.events, ...(subject ? [keys.topic(...named(subject))] : [])],
        [after === undefined ? "" : idOf(after), `${limit}`, newEpoch(), ...place],
      ),
    )) as [Buffer, Buffer, Buffer, number, Buffer, Buffer, ...Buffer[]];
    const cursor = (id: Buffer) => cursorOf(`${id}`, `${epoch}`);
    const bounds = { epoch: `${epoch}`, floor: cursor(floor), tail: cursor(mark) };
    if (after !== undefined) {
      assertReadable(after, bounds);
      // The event was lost with a failed server, and the log has gone on without it.
      if (known !== 1) throw cursorExpired("the event it names was lost");
    }
    const found = this.#eventsOf(events, `${epoch}`);
    return { events: found, upTo: cursor(upTo), bounds, stored: cursor(tail) };
  }

  /**
   * Waits until replicas hold all that is stored, then lets it be shown.
   * @throws GatewayError UNAVAILABLE when they do not
   */
  settle(): Promise<void> {
    // A run that is under way may have begun before the latest event was stored: wait for the next.
    this.#nextSettling ??= (this.#settling ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        this.#settling = this.#nextSettling;
        this.#nextSettling = undefined;
        return this.#settle();
      });
    return this.#nextSettling;
  }

  async #settle(): Promise<void> {
    const { writer, keys } = this.#options;
    const on = [keys.log, keys.events];
    const [epoch, id] = (await writer.run(touchLog, on, [newEpoch()])) as [string, string];
    await this.#show(epoch, id);
  }

  /** Moves the mark, one request at a time: calls that arrive meanwhile share the next request. */
  #show(epoch: string, id: string): Promise<void> {
    const next = this.#nextShowing;
    if (next?.epoch === epoch) {
      if (cursorOf(id, epoch) > cursorOf(next.id, epoch)) next.id = id;
      return next.shown;
    }
    const showing = { epoch, id, shown: Promise.resolve() };
    showing.shown = (this.#showing ?? Promise.resolve())
      .catch(() => {})
      .then(() => {
        if (this.#nextShowing === showing) this.#nextShowing = undefined;
        return this.#mark(showing.epoch, showing.id);
      });
    this.#nextShowing = showing;
    this.#showing = showing.shown;
    return showing.shown;
  }

  async #mark(epoch: string, id: string): Promise<void> {
    const { client, keys } = this.#options;
    const on = [keys.log, keys.events];
    await ask(client, () => markLog.run(client, on, [epoch, id, keys.wakeUp]));
  }

  async snapshot(subject: Subject): Promise<Snapshot | undefined> {
    for (let tries = 0; ; tries++) {
      const found = await this.#snapshot(subject);
      if (found?.isShown !== false) return found?.snapshot;
      if (tries === maxTries) throw storeAway(new Error("events come faster than they are shown"));
      // Replicas do not hold this state yet, so a failover may lose it. Read it again after
      // `settle`: a server that was promoted meanwhile has settled its own data, which may differ.
      await this.settle();
    }
  }

  async #snapshot(
    subject: Subject,
  ): Promise<{ readonly snapshot: Snapshot; readonly isShown: boolean } | undefined> {
    const { client, keys } = this.#options;
    const answer = (await ask(client, () =>
      readState.runBuffer(client, [keys.log, keys.events, keys.state(...named(subject))], []),
    )) as [Buffer, Buffer, Buffer, Buffer, ...Buffer[]] | null;
    if (answer === null) return undefined;
    const [epoch, floor, mark] = answer.slice(0, 3).map(String) as [string, string, string];
    const fields = new Map(
      pairs(answer.slice(4)).map(([name, value]): [string, Buffer] => [`${name}`, value]),
    );
    const last = cursorOf(`${fields.get("last") ?? floor}`, epoch);
    // An event that is no longer kept is no place to read on from.
    const cursor = last >= cursorOf(floor, epoch) ? last : cursorOf(mark, epoch);
    const states = this.#statesOf(fields, epoch);
    const stored = fields.get("facts");
    const known = stored
      ? (JSON.parse(`${stored}`) as StoredFact[])
      : factsOfStates(states.map(timed));
    const folded = Number(`${fields.get("folded") ?? 0}`);
    const facts = readFacts(known, { held: fields.has("holds"), folded });
    return { snapshot: { states, facts, cursor }, isShown: last <= cursorOf(mark, epoch) };
  }

  async noteHold(externalId: string, call: string, isHolding: boolean): Promise<void> {
    const { writer, keys, retentionMs } = this.#options;
    const args = [call, isHolding ? "1" : "0", `${maxHolds}`, `${retentionMs}`];
    await writer.run(noteHold, [keys.state("payment", externalId)], args);
  }

  /** The newest events of a subject, oldest first; with `before`, the newest of those before it. */
  async history(subject: Subject, limit: number, before?: Cursor): Promise<Event[]> {
    if (limit <= 0) return [];
    const end = before === undefined ? "" : idOf(before);
    const { client, keys } = this.#options;
    const answer = (await ask(client, () =>
      readHistory.runBuffer(
        client,
        [keys.log, keys.events, keys.topic(...named(subject))],
        [`${limit}`, end],
      ),
    )) as [Buffer, ...Buffer[]] | null;
    if (answer === null) {
      if (before !== undefined) throw cursorExpired("the log that it is of was lost");
      return [];
    }
    const [epoch, ...events] = answer;
    if (before !== undefined) assertOf(before, `${epoch}`);
    return this.#eventsOf(events, `${epoch}`).reverse();
  }

  #eventsOf(rows: readonly Buffer[], epoch: string): Event[] {
    const events: Event[] = [];
    for (let at = 0; at + 2 < rows.length; at += 3) {
      const [id, bytes, facts] = rows.slice(at, at + 3) as [Buffer, Buffer, Buffer];
      const after = `${facts}`;
      const own = this.#own.find(cursorOf(`${id}`, epoch), bytes, after);
      if (own) {
        events.push(own);
        continue;
      }
      const event = this.#eventOf(`${id}`, bytes, epoch);
      // An event imported from another store has its state here instead of facts.
      if (/^\d+$/.test(after)) setState(event, Number(after) as PaymentState);
      else setStateAfter(event, factsOf(after));
      events.push(event);
    }
    return events;
  }

  #eventOf(id: string, bytes: Buffer, epoch: string): Event {
    const { event, locked } = readEvent(this.#options.seal, bytes);
    if (locked) this.#options.onLocked();
    event.cursor = cursorOf(id, epoch);
    return event;
  }

  #statesOf(fields: ReadonlyMap<string, Buffer>, epoch: string): OperationState[] {
    const states: OperationState[] = [];
    for (const [name, value] of fields) {
      const bytes = fields.get(`e${name}`);
      if (!bytes) continue;
      const [subjectId, operation] = JSON.parse(name) as [string, string];
      const { rank, status, operation_id, since, id } = JSON.parse(`${value}`) as StoredState;
      states.push({
        operation,
        subjectId,
        operationId: operation_id,
        rank,
        status,
        since: cursorOf(since, epoch),
        event: this.#eventOf(id, bytes, epoch),
      });
    }
    return states.sort((a, b) => (a.event.cursor < b.event.cursor ? -1 : 1));
  }

  /** The cursor after which the newest `count` events of the account come. */
  async cursorBefore(count: number): Promise<Cursor> {
    const { client, keys } = this.#options;
    const [epoch, id] = (await ask(client, () =>
      placeBefore.run(client, [keys.log, keys.events], [`${Math.max(count, 0)}`, newEpoch()]),
    )) as [string, string];
    return cursorOf(id, epoch);
  }

  async unfinished(forMs: number, limit: number): Promise<Unfinished[]> {
    const { client, keys, retentionMs } = this.#options;
    const args = [`${forMs}`, `${limit}`, `${2 * retentionMs}`];
    const found = (await ask(client, () =>
      readUnfinished.runBuffer(client, [keys.unfinished], args),
    )) as Buffer[];
    return pairs(found).map(([member, ageMs]) => ofMember(`${member}`, Number(`${ageMs}`)));
  }

  async dismiss(unfinished: readonly Unfinished[]): Promise<void> {
    const { client, keys } = this.#options;
    const members = unfinished.flatMap((one) => memberOf(one) ?? []);
    if (members.length > 0) await ask(client, () => client.zrem(keys.unfinished, ...members));
  }
}

const readUnfinished = loadScript(new URL("./read-unfinished.lua", import.meta.url));
const script = (name: string) =>
  loadScript(new URL("./open-log.lua", import.meta.url), new URL(name, import.meta.url));
const appendEvent = script("./append-event.lua");
const markLog = script("./mark-log.lua");
const touchLog = script("./touch-log.lua");
const readEvents = script("./read-events.lua");
const readHistory = script("./read-history.lua");
const placeBefore = script("./place-before.lua");
const readState = script("./read-state.lua");
const noteHold = loadScript(new URL("./note-hold.lua", import.meta.url));

export function named({ kind, externalId }: Subject): [kind: string, externalId: string] {
  return [kinds[kind].name, externalId];
}

function timed(state: OperationState) {
  return { ...state, atMs: decodeCursor(state.event.cursor).ms };
}

/** The facts stored with an event, as append-event.lua writes them; older events have none. */
function factsOf(text: string): Facts {
  if (text === "") return noFacts;
  const [held, folded, facts] = JSON.parse(text) as [string, string, StoredFact[]];
  return readFacts(facts, { held: held === "1", folded: Number(folded) });
}

/** A state as append-event.lua writes it. */
interface StoredState {
  readonly rank: Rank;
  readonly status: string;
  readonly operation_id: string;
  readonly since: string;
  readonly id: string;
}

function pairs(list: readonly Buffer[]): [Buffer, Buffer][] {
  const found: [Buffer, Buffer][] = [];
  for (let at = 0; at + 1 < list.length; at += 2) {
    found.push([list[at] as Buffer, list[at + 1] as Buffer]);
  }
  return found;
}

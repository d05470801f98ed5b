import { GatewayError, StoreUnavailable } from "../errors.ts";
import { type Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import { type Kind, kinds } from "../model/kinds.ts";
import { noReport, type Observations } from "../report.ts";
import { assertOf, assertReadable, type Cursor, cursorOf, msOf } from "../stores/cursor.ts";
import type { Kernel, RangeOptions } from "../stores/kernel.ts";
import { activeTrace } from "../telemetry/tracing/tracing.ts";
import { type AccountOptions, LedgerAccount } from "./account.ts";
import {
  addNews,
  adoptCall,
  beginCall,
  callOfMember,
  dueIndex,
  endCall,
  givenUpIndex,
  giveUpCall,
  intentOfCall,
  keptBeyondMs,
  lookedAt,
  pendingFrom,
} from "./calls.ts";
import type { Change, Draft } from "./change.ts";
import { DeadLetters } from "./dead-letters.ts";
import { keptFor } from "./entries.ts";
import {
  type About,
  type Begun,
  type Ending,
  type Intent,
  isUnknown,
  type Known,
  keyRetentionMs,
  type Look,
  type NewIntent,
  type OpenCall,
  type SettledBy,
} from "./intents.ts";
import { indexesOf, list } from "./listing.ts";
import type {
  Appended,
  Entry,
  Listed,
  OperationState,
  ReadOptions,
  Selection,
  Topic,
} from "./log.ts";
import { maxInspected, unsettledOf } from "./open-calls.ts";
import {
  keyRecordKey,
  newRecord,
  ofRecordKey,
  type PaymentRecord,
  passOver,
  recordIn,
  recordKey,
} from "./record.ts";
import { traceOf } from "./stored-event.ts";
import { readOn } from "./tail.ts";
import { createTurns } from "./turns.ts";

export interface LedgerOptions extends AccountOptions {
  readonly kernel: Kernel;
}

/**
 * What is known of all payments and payouts: the log of their events, the calls that move money with
 * the locks that they hold, and the uses of `Idempotency-Key`. Each step is one commit of the store
 * beneath. One ledger serves all merchant accounts and keeps them separate: no account can reach
 * another's data.
 *
 * What it promises of events (`test/ledger` checks it):
 * - append is atomic: stored, deduplicated, merged into the state and published in one step;
 * - an account's cursors grow with each event, and their order as text is the order of the events;
 * - `read` yields each event of the topic after its start exactly once, in order: stored events,
 *   then live ones, without a gap between the two;
 * - state never goes back in rank; of two different final states success wins (see facts.ts);
 * - a status that is not known changes no state: its word is kept with the operation;
 * - each event carries the state of its external id after it (see payment-state.ts), and an
 *   external id keeps the newest 100 of its failures;
 * - all readers share one object per event: nobody may change it.
 *
 * And of calls that move money, whose intents are recorded before anything is sent:
 * - begin is one step: key, lock and intent are taken together or not at all;
 * - a lock is on a method, kind and external_id. Each open call holds its own until it has an
 *   answer, so that ending a call, or giving it up, does not release the lock of another one;
 * - a call that is not ended within its lease counts as one of unknown outcome: key and lock stay;
 * - a call that events have ended still gets its own answer: the key's, and its mark;
 * - a key is kept for `keyRetentionMs`, a lock until its call is settled or given up;
 * - what is stored settles the calls whose outcome it shows (evidence.ts), in the same step. A call
 *   within its lease waits for its own answer, unless another call asks for its lock.
 *
 * Its methods throw GatewayError UNAVAILABLE when the store is out of reach: nothing was acknowledged.
 */
export class Ledger {
  /** Callbacks that could not be turned into events. */
  readonly letters: DeadLetters;
  readonly #options: LedgerOptions;
  readonly #accounts = new Map<string, LedgerAccount>();
  readonly #turns = createTurns();

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.letters = new DeadLetters((account) => this.#account(account));
  }

  /** Whether what was appended survives this process. */
  get durable(): boolean {
    return this.#options.kernel.durable;
  }

  /**
   * A callback is a duplicate of an earlier callback with the same digest or the same identity. A
   * response or a reconciliation is a duplicate of any earlier entry with the same identity, and also
   * if it would lower the rank of its operation, since it adds nothing. The exception is the first
   * entry that says whether the payment is held, if that differs from what was noted.
   */
  async append(account: string, entry: Entry): Promise<Appended> {
    const decide = (change: Change, draft: Draft) => addNews(change, draft, entry);
    return (await this.#stepOf(account, entry, decide, { told: entry })).result;
  }

  async known(account: string, kind: Kind, externalId: string): Promise<Known> {
    const of = this.#account(account);
    const key = recordKey(kind, externalId);
    const { records, bounds } = await of.kernel.read([key], { shown: true });
    const [stored] = records;
    return of.understood(key, () => {
      const record = recordIn(stored?.text ?? "") ?? newRecord();
      const { holds, folded, marks, last, firstSeen } = record;
      const cursorAt = (place: string) => cursorOf(place, bounds.epoch);
      const operations = record.operations.map((one): OperationState => {
        const bytes = stored?.attachments.get(`e${one.n}`) ?? new Uint8Array();
        const place = cursorAt(one.place);
        return {
          ...one,
          since: cursorAt(one.since),
          place,
          event: of.eventOf({ cursor: place, bytes }),
        };
      });
      // A reader cannot resume from an event that is no longer kept.
      const isKept = last === "" || cursorAt(last) >= bounds.floor;
      const startsMs = record.calls.map(({ startedAt }) => Number(startedAt));
      return {
        ...{ operations, holds, folded, marks },
        calls: record.calls.map((call) => intentOfCall({ kind, externalId }, call)),
        cursor: isKept ? last && cursorAt(last) : bounds.tail,
        firstSeen: firstSeen === undefined ? undefined : Number(firstSeen),
        updatedMs: Math.max(last === "" ? 0 : msOf(last), ...startsMs),
      };
    });
  }

  /**
   * The `traceparent` of the call that caused an event or callback of a payment or payout, if calls are
   * traced: of one that is open, or of the newest answer in the log. Never rejects.
   */
  async causeOf(account: string, kind: Kind, externalId: string): Promise<string | undefined> {
    const isTraced = (trace: string | undefined) => trace !== undefined;
    try {
      const { calls } = await this.known(account, kind, externalId);
      const open = calls.map(({ trace }) => trace).findLast(isTraced);
      if (open !== undefined) return open;
      const events = await this.history(account, kind, externalId, 20);
      const answers = events.filter(({ source }) => source === EventSource.RESPONSE);
      return answers.map(traceOf).findLast(isTraced);
    } catch {
      return undefined;
    }
  }

  /**
   * Events of a topic after a cursor; `latest` is from now on, `earliest` from the oldest kept. The
   * start is fixed when the promise resolves: everything appended later is yielded.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor; OUT_OF_RANGE for a cursor
   * of another log, older than what is kept, or ahead of the log. The iteration throws
   * RESOURCE_EXHAUSTED when its live buffer (1,000 events) is full and UNAVAILABLE when the ledger is
   * closed, both with `resumeCursor`, and OUT_OF_RANGE when the retention overtakes it.
   */
  async read(
    account: string,
    topic: Topic,
    after: Cursor | "latest" | "earliest",
    options: ReadOptions,
  ): Promise<AsyncIterable<Event>> {
    return readOn(this.#account(account), topic, after, options);
  }

  /**
   * The newest `limit` kept events of one payment or payout, or those before a cursor; else the oldest,
   * or those behind it. Oldest first.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor; OUT_OF_RANGE for a cursor
   * of another log, and as `read` for one that the oldest are to follow
   */
  async history(
    account: string,
    kind: Kind,
    externalId: string,
    limit: number,
    at?: Cursor,
    newest = true,
  ): Promise<Event[]> {
    const of = this.#account(account);
    const key = recordKey(kind, externalId);
    let events: Event[] = [];
    for (let place = at; ; ) {
      const missing = limit - events.length;
      const { rows, bounds } = await of.kernel.page(key, place, missing, newest);
      if (place !== undefined && newest) assertOf(place, bounds.epoch);
      else if (place !== undefined) assertReadable(place, bounds);
      const found = of.eventsOf(rows);
      events = newest ? [...found, ...events] : [...events, ...found];
      // In place of those that cannot be read come others.
      if (rows.length < missing || found.length === missing) return events;
      place = rows.at(newest ? 0 : -1)?.cursor;
    }
  }

  /**
   * The first `limit` payments or payouts of a selection that are known, in the order in which the
   * store first heard of each. What is known of them may have changed since this was read.
   */
  async list(account: string, selection: Selection, limit: number): Promise<Listed[]> {
    const { after = 0, before = Number.MAX_SAFE_INTEGER, newestFirst } = selection;
    const range = { min: after + 1, max: before - 1, limit, newestFirst };
    const found = await this.#account(account).kernel.range(indexesOf(selection), range);
    // Who reads its record finds none of a member that is no record's key.
    const start = recordKey(selection.kind, "").length;
    return found.map(({ member, score }) => ({
      externalId: member.slice(start),
      firstSeen: score,
    }));
  }

  /**
   * The cursor after which exactly the newest `count` kept events come, or all if there are fewer.
   */
  async cursorBefore(account: string, count: number): Promise<Cursor> {
    const { kernel } = this.#account(account);
    const { rows, bounds } = await kernel.page(undefined, undefined, count + 1, true);
    return (rows.length > count && rows[0]?.cursor) || bounds.floor;
  }

  async begin(account: string, given: NewIntent): Promise<Begun> {
    const keyOf = given.key && keyRecordKey(given.key.digest);
    const { result, nowMs } = await this.#stepOf(
      account,
      given,
      (change, draft, keyDraft) => beginCall(change, draft, keyDraft, given),
      { keyDigest: given.key?.digest },
    );
    if (typeof result !== "string") {
      // Of one that begins with this step, the store has told the start.
      const startedAt = Number(result.startedAt) > 0 ? result.startedAt : `${nowMs}`;
      return {
        kind: "started",
        intent: { ...intentOfCall(given, { ...result, startedAt }), given },
      };
    }
    if (result === "keyAnswered" && keyOf) {
      const { records } = await this.#account(account).kernel.read([keyOf]);
      const answer = records[0]?.attachments.get("answer");
      return answer ? { kind: "keyAnswered", answer: Buffer.from(answer) } : { kind: "keyUnknown" };
    }
    if (result === "over") {
      throw new StoreUnavailable(new Error("the call was taken for lost while it began"));
    }
    return { kind: result } as Begun;
  }

  /** Ends a call, together with what its answer tells. Ending it again does no harm. */
  async end(
    account: string,
    intent: Intent,
    ending: Ending,
    told?: Entry,
  ): Promise<Appended | undefined> {
    const { keyDigest } = intent;
    const decide = (change: Change, draft: Draft, keyDraft: Draft | undefined) =>
      endCall(change, draft, keyDraft, intent, ending, told);
    return (await this.#stepOf(account, intent, decide, { keyDigest, told })).result;
  }

  /** Stores that a call is lost, and is due: its lease is over, and its process is gone, or slow. */
  async lose(account: string, intent: Intent): Promise<void> {
    const { id, checks, notFound, keyDigest } = intent;
    const decide = (change: Change, draft: Draft, keyDraft: Draft | undefined) => {
      endCall(change, draft, keyDraft, intent, { state: "unknown" });
      lookedAt(change, draft, id, { checks, notFound, inMs: 0 });
    };
    await this.#stepOf(account, intent, decide, { keyDigest });
  }

  /**
   * Stores a call that began without the store. Twice does no harm.
   * @param ageMs how long ago it began: the clock of this process may differ from the store's
   */
  async adopt(account: string, given: NewIntent, ageMs: number): Promise<void> {
    await this.#stepOf(account, given, (change, draft) =>
      adoptCall(change, draft, given, change.nowMs - ageMs),
    );
  }

  /**
   * Intents that are due for a look, also those whose lease ran out: those of unknown outcome first,
   * then the pending ones, the longest due first of each.
   */
  async due(account: string, limit: number): Promise<Intent[]> {
    await this.#account(account).hearClock();
    const lost = await this.#dueFrom(0, account, limit);
    if (lost.length === limit) return lost;
    return [...lost, ...(await this.#dueFrom(pendingFrom, account, limit - lost.length))];
  }

  /** @param from what their scores begin at */
  async #dueFrom(from: number, account: string, limit: number): Promise<Intent[]> {
    for (let asked = limit; ; asked *= 2) {
      const nowMs = this.nowMs(account);
      const range = { min: from, max: from + nowMs, limit: asked };
      const { calls, isAll } = await this.#callsIn(account, dueIndex, range);
      const due = calls.filter(
        (intent) =>
          (intent.state !== "running" || isUnknown(intent, nowMs)) && !this.isEnding(intent),
      );
      // One whose record cannot be read stays in the index, and must not hide those behind it.
      if (due.length >= limit || isAll) return due.slice(0, limit);
    }
  }

  /** Whether the call has ended here and the store does not have its end yet: it is not lost. */
  protected isEnding(_call: Intent): boolean {
    return false;
  }

  /** Stores what a look found out, what follows for the calls, and when this one is due next. */
  async looked(account: string, intent: Intent, look: Look): Promise<void> {
    const decide = (change: Change, draft: Draft) => lookedAt(change, draft, intent.id, look);
    await this.#stepOf(account, intent, decide, { by: look.by, told: look.told });
  }

  /** Stops looking it up, releases the lock, tells watchers, and keeps it for an operator. */
  async giveUp(account: string, intent: Intent): Promise<void> {
    await this.#stepOf(account, intent, (change, draft) => giveUpCall(change, draft, intent.id));
  }

  /**
   * Calls of unknown or pending outcome, for operators and metrics: those that were given up come first,
   * then the unknown ones, then the pending ones; each oldest first. Only 1,000 that were given up are
   * considered, the longest ago, and 1,000 others: the longest due first, the pending ones last.
   */
  async unsettled(account: string): Promise<Intent[]> {
    await this.#account(account).hearClock();
    const range = { limit: maxInspected };
    const given = await this.#callsIn(account, givenUpIndex, range);
    const due = await this.#callsIn(account, dueIndex, range);
    return unsettledOf([...given.calls, ...due.calls], this.nowMs(account));
  }

  /**
   * Stores that all calls that run are lost: for a store that only this process uses, at its start. The
   * process that began them is gone.
   */
  async endLeases(account: string): Promise<void> {
    // Most calls are pending: a step on each would keep a gateway from its start for minutes.
    const range = { max: pendingFrom - 1, limit: Number.MAX_SAFE_INTEGER };
    const { calls } = await this.#callsIn(account, dueIndex, range);
    const nowMs = this.nowMs(account);
    // By a clock that was set back since it began, nobody looks at a call before the clock catches up.
    const waiting = calls.filter(
      ({ state, startedAtMs }) => state === "running" || startedAtMs > nowMs,
    );
    const lose = (intent: Intent) => this.lose(account, intent).catch(passOver);
    // Many at once, since each alone would wait for a sync of the disk; few enough to be answered in
    // time.
    while (waiting.length > 0) await Promise.all(waiting.splice(0, leasesAtOnce).map(lose));
  }

  /** The store's clock as last received, in milliseconds since the epoch. It times the intents. */
  nowMs(account: string): number {
    return this.#account(account).kernel.nowMs();
  }

  /** Takes or renews the reconciler's lease for `ttlMs`. False while another holder has it. */
  async lease(account: string, holder: string, ttlMs: number): Promise<boolean> {
    const { result } = await this.#account(account).transact(["lease"], (change) => {
      const [draft] = change.drafts as readonly [Draft];
      const lease = draft.value as { readonly holder: string } | undefined;
      const isFree = lease === undefined || lease.holder === holder;
      change.isRead = !isFree;
      // With the time each renewal is a change, from which on the record is kept.
      if (isFree) Object.assign(draft, { value: { holder, at: change.now }, keepMs: ttlMs });
      return isFree;
    });
    return result;
  }

  /** Ends all reads. A closed ledger accepts nothing more. */
  async close(): Promise<void> {
    const details = { reason: "LOG_CLOSED" } as const;
    const error = new GatewayError("UNAVAILABLE", "the event log is closed", details);
    for (const account of this.#accounts.values()) account.close(error);
    await this.#options.kernel.close(error);
  }

  /**
   * The calls that an index names, without those whose record cannot be read. Members whose call is gone
   * are dropped. @returns `isAll` if there are no more
   */
  async #callsIn(account: string, index: string, range: RangeOptions) {
    const of = this.#account(account);
    const found = await of.kernel.range([index], range);
    const isAll = found.length < range.limit;
    if (found.length === 0) return { calls: [], isAll };
    const keys = new Set(found.map(({ member }) => callOfMember(member).key));
    const { records } = await of.kernel.read([...keys]);
    const texts = new Map(records.map(({ key, text }) => [key, text]));
    const gone: string[] = [];
    const calls = found.flatMap(({ member }) => {
      const { id, key } = callOfMember(member);
      try {
        return of.understood(key, () => {
          const calls = recordIn(texts.get(key) ?? "")?.calls;
          const call = calls?.find((one) => one.id === id);
          if (call) return intentOfCall(ofRecordKey(key), call);
          gone.push(member);
          return [];
        });
      } catch (error) {
        passOver(error);
        return [];
      }
    });
    if (gone.length > 0) {
      const indexes = gone.map((member) => ({ index, member, score: undefined }));
      // Whoever finds them next tries again.
      await of.kernel.commit({ token: "", records: [], events: [], indexes }).catch(() => {});
    }
    return { calls, isAll };
  }

  /** A step on the record of a payment or payout, and on that of a key if one is given. */
  async #stepOf<T>(
    account: string,
    about: About,
    decide: (change: Change, draft: Draft, keyDraft: Draft | undefined) => T,
    { keyDigest = "", by, told }: StepOptions = {},
  ) {
    const { report = noReport } = this.#options;
    const { kind, externalId } = about;
    const keys = [recordKey(kind, externalId)];
    if (keyDigest !== "") keys.push(keyRecordKey(keyDigest));
    const trace = activeTrace();
    const startedMs = performance.now();
    const tell = (from: EventSource, outcome: Appending["outcome"], conflict = false) => {
      const source = sourceNames[from] ?? "reconciliation";
      const of = { account, kind: kinds[kind].name, externalId, source };
      const durationMs = performance.now() - startedMs;
      report("appended", { ...of, outcome, conflict, durationMs });
    };
    try {
      const done = await this.#account(account).transact(keys, (change) => {
        const [draft, keyDraft] = change.drafts as readonly [Draft, Draft?];
        change.trace = trace;
        const result = decide(change, draft, keyDraft);
        if (keyDraft) keyDraft.keepMs = keyRetentionMs;
        if (draft.value && !change.isRead) list(change, draft);
        this.#keep(draft);
        return result;
      });
      const { written, settled } = done.change;
      for (const { source, outcome, conflict } of written) tell(source, outcome, conflict);
      for (const { call, by: own = by ?? settledBy(kind, call) } of settled) {
        this.onSettled(account, intentOfCall(about, call));
        const { method, state: was } = call;
        report("settled", { account, method, externalId, was, by: own });
      }
      return done;
    } catch (error) {
      if (told) tell(told.source, "failed");
      throw error;
    }
  }

  /** Called with each call that an event or a look settles here, as it was. */
  protected onSettled(_account: string, _settled: Intent): void {}

  /** Says how long the record of a payment or payout is kept: still longer if it has had calls. */
  #keep(draft: Draft): void {
    const { calls, marks, over } = (draft.value as PaymentRecord | undefined) ?? newRecord();
    const callsMs = this.#options.giveUpMs + keptBeyondMs;
    const hadCalls = calls.length + marks.length + over.length > 0;
    draft.keepMs = Math.max(keptFor(this.#options), hadCalls ? callsMs : 0);
    // One that is pending holds no lock, and the service tells of it again.
    draft.isPinned = calls.some(({ state }) => state !== "pending");
  }

  #account(name: string): LedgerAccount {
    const kernel = this.#options.kernel.account(name);
    let account = this.#accounts.get(name);
    if (!account) {
      account = new LedgerAccount(name, kernel, this.#options, this.#turns);
      this.#accounts.set(name, account);
    }
    return account;
  }
}

interface StepOptions extends Pick<Look, "by" | "told"> {
  readonly keyDigest?: string | undefined;
}

type Appending = Observations["appended"];

const sourceNames: Readonly<Partial<Record<EventSource, Appending["source"]>>> = {
  [EventSource.CALLBACK]: "callback",
  [EventSource.RESPONSE]: "response",
};

/** How many calls are stored as lost at a time. */
const leasesAtOnce = 500;

/** A callback that a look asked for arrives like any other event. */
function settledBy(kind: Kind, { checks }: OpenCall): SettledBy {
  return kinds[kind].answersByCallback && checks > 0 ? "resend" : "event";
}

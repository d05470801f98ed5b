import { create } from "@bufbuild/protobuf";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import { currentEvent, firstEvent } from "../events/current.ts";
import type { Cursor, EventLog, Snapshot, Topic } from "../events/log.ts";
import { isPayingOperation, setState } from "../events/payment-state.ts";
import { rememberTrace, traceOf } from "../events/trace-of.ts";
import {
  CallOutcome,
  type Event,
  type EventKind,
  EventSchema,
} from "../gen/payments/v1/event_pb.ts";
import type { WatchPaymentRequest } from "../gen/payments/v1/payment_service_pb.ts";
import { openCallsOf, outcomeFlags } from "../intents/settle.ts";
import type { IntentStore } from "../intents/store.ts";
import type { Kind } from "../model/kinds.ts";
import type { Call } from "./core.ts";
import type { StreamDrain } from "./stream-drain.ts";
import { invalidFields } from "./validate.ts";

export interface StreamOptions {
  readonly log: EventLog;
  readonly intents: IntentStore;
  readonly call: Call;
  /** Ends streams when the gateway shuts down. */
  readonly drain: StreamDrain;
}

/** Where a stream begins. */
interface Start {
  /** `earliest`: from the oldest event that is kept. */
  readonly after: Cursor | "earliest" | undefined;
}

export interface WatchRequest extends Start {
  readonly kind: Kind;
  readonly externalId: string;
  readonly untilFinal: boolean;
}

export interface StreamRequest extends Start {
  readonly kinds: readonly EventKind[];
}

/**
 * One payment or payout, live: its current state if one is known and no cursor was given, then each
 * event behind it exactly once.
 * @param asked is called when the first event is asked for; what it throws, the stream throws
 */
export function watch(options: StreamOptions, asked: () => WatchRequest): AsyncIterable<Event> {
  const { log, call } = options;
  return resumable(options, asked, async function* (request, signal) {
    const { kind, externalId, after } = request;
    const topic: Topic = { kind, externalId };
    const { account } = call.caller;
    const end = new WatchEnd(options, request);
    if (after === "latest" || (after === "earliest" && call.resumed)) throw noCursor();
    // The live part is attached before the snapshot is read: what comes between the two is in both,
    // and its cursor tells.
    let from: Cursor | undefined;
    let told: Snapshot | undefined;
    const isKnown = (event: Event) => told !== undefined && event.cursor <= told.cursor;
    const { push } = call;
    const events = await log.read(account, topic, after ?? "latest", {
      signal: end.with(signal),
      push: push && ((event) => isKnown(event) || (end.isAhead(event) && push(event))),
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: (error) => {
        if (!end.isOver || signal.aborted) call.onFail?.(error);
      },
    });
    try {
      if (after !== undefined && (await end.isAt(after))) return;
      const known =
        after === undefined ? await openCallsOf(options, account, kind, externalId) : undefined;
      const current = known?.snapshot && firstEvent(known.snapshot);
      // Where the snapshot tells nothing, no event is in it.
      told = current && known.snapshot;
      call.onOpen?.(current ? undefined : from);
      if (known && told && current) {
        const event = create(EventSchema, { ...current, cursor: told.cursor });
        setState(event, told.facts, outcomeFlags(known.openCalls).outcomeUnknown);
        rememberTrace(event, traceOf(current));
        yield event;
        if (await end.isBehind(event)) return;
      }
      for await (const event of events) {
        if (isKnown(event)) continue;
        yield event;
        if (await end.isBehind(event)) return;
      }
    } catch (error) {
      if (!end.isOver || signal.aborted) throw error;
    } finally {
      end.stop();
    }
  });
}

/** How often a stream looks whether the call is over that keeps it from its end, in milliseconds. */
const lookMs = 500;

/** Events of one payment or payout that are looked through for a client's last one. */
const lookBack = 256;

/**
 * Where a stream that goes on until the end is over: behind an end of an operation that pays, unless a
 * call for the external_id is open, which may end otherwise; or behind the word that a lost call was
 * not done, or that nobody can tell. That call may end without a further event, so it is looked for;
 * whatever was stored by then is told before the stream ends.
 */
class WatchEnd {
  readonly #options: StreamOptions;
  readonly #request: WatchRequest;
  /** Aborts when the stream has come to its end without an event: it was to go on until then. */
  readonly #over: AbortController | undefined;
  /** What the reader has had. */
  #place: Cursor = "";
  /** It has had an end, or knew of one: with the last open call the stream is over. */
  #isDue = false;
  /** The newest event when no call was open any more. */
  #last: Cursor | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(options: StreamOptions, request: WatchRequest) {
    this.#options = options;
    this.#request = request;
    if (request.untilFinal) this.#over = new AbortController();
  }

  /** Whether the stream has come to its end without an event. */
  get isOver(): boolean {
    return this.#over?.signal.aborted === true;
  }

  /** Aborts then, and with a signal. */
  with(signal: AbortSignal): AbortSignal {
    return this.#over ? AbortSignal.any([signal, this.#over.signal]) : signal;
  }

  /** Whether a stream that goes on from here is over before it begins. */
  async isAt(after: Cursor | "earliest"): Promise<boolean> {
    if (!this.#request.untilFinal) return false;
    this.#place = after === "earliest" ? "" : after;
    const { log, call } = this.#options;
    const { kind, externalId } = this.#request;
    const { account } = call.caller;
    const history = await log.history(account, kind, externalId, lookBack);
    const had = history.find(({ cursor }) => cursor === this.#place);
    // A client that connects again by itself has had the end already, whatever came behind it.
    const isOver = had !== undefined && (call.resumed || had === history.at(-1));
    if (isOver && (await this.#isEnd(had))) return true;
    const { snapshot } = await openCallsOf(this.#options, account, kind, externalId);
    const current = snapshot && currentEvent(snapshot);
    this.#isDue = current !== undefined && isFinal(current);
    return this.#isOver();
  }

  /**
   * Whether it is plain that the stream goes on behind an event, which its reader gets then: one that
   * ends no operation, while no end is known. To tell the rest takes time.
   */
  isAhead(event: Event): boolean {
    if (!this.#request.untilFinal) return true;
    if (this.#isDue || isFinal(event) || endingOutcomes.has(event.callOutcome)) return false;
    this.#place = event.cursor;
    if (isPaying(event)) this.#last = undefined;
    return true;
  }

  async isBehind(event: Event): Promise<boolean> {
    if (!this.#request.untilFinal) return false;
    this.#place = event.cursor;
    if (await this.#isEnd(event)) return true;
    if (isPaying(event)) {
      this.#isDue = event.final;
      this.#last = undefined;
    }
    return this.#isOver();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #isEnd(event: Event): Promise<boolean> {
    return endingOutcomes.has(event.callOutcome) || (isFinal(event) && !(await this.#isCallOpen()));
  }

  async #isOver(): Promise<boolean> {
    if (!this.#isDue) return false;
    if (this.#last === undefined && !(await this.#isCallOpen())) this.#last = await this.#newest();
    if (this.#last !== undefined) return this.#place >= this.#last;
    this.#lookLater();
    return false;
  }

  #lookLater(): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => void this.#look(), lookMs).unref();
  }

  async #look(): Promise<void> {
    if ((await this.#isOver()) && !this.#stopped) this.#over?.abort();
  }

  /** True also where it cannot be told: the stream goes on then. */
  async #isCallOpen(): Promise<boolean> {
    const { kind, externalId } = this.#request;
    try {
      const { account } = this.#options.call.caller;
      const { openCalls } = await openCallsOf(this.#options, account, kind, externalId);
      return outcomeFlags(openCalls).outcomeUnknown;
    } catch {
      return true;
    }
  }

  /** Empty when none is kept; undefined where it cannot be told. */
  async #newest(): Promise<Cursor | undefined> {
    const { log, call } = this.#options;
    const { kind, externalId } = this.#request;
    try {
      const [event] = await log.history(call.caller.account, kind, externalId, 1);
      return event?.cursor ?? "";
    } catch {
      return undefined;
    }
  }
}

/** Nothing more is to be waited for behind these. */
export const endingOutcomes: ReadonlySet<CallOutcome> = new Set([
  CallOutcome.NOT_DONE,
  CallOutcome.NEEDS_OPERATOR,
]);

function isFinal(event: Event): boolean {
  return event.final && isPaying(event);
}

function isPaying({ resource }: Event): boolean {
  switch (resource.case) {
    case undefined:
      return false;
    case "payment":
      return isPayingOperation(resource.value.operation);
    case "payout":
      return true;
  }
}

/** Every event of an account, or those of some kinds, behind a cursor or from now on. */
export function stream(options: StreamOptions, asked: () => StreamRequest): AsyncIterable<Event> {
  const { log, call } = options;
  return resumable(options, asked, async function* ({ kinds, after }, signal) {
    if (after === "latest" || (after === "earliest" && call.resumed)) throw noCursor();
    let from: Cursor | undefined;
    const events = await log.read(call.caller.account, { kinds }, after ?? "latest", {
      signal,
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: call.onFail,
      push: call.push,
    });
    call.onOpen?.(from);
    yield* events;
  });
}

/** Where a watch request asks to begin. @throws GatewayError INVALID_ARGUMENT for what is no cursor */
export function startOf({
  afterCursor,
  fromStart,
}: Pick<WatchPaymentRequest, "afterCursor" | "fromStart">): WatchRequest["after"] {
  if (fromStart) return "earliest";
  if (afterCursor === "earliest") throw noCursor();
  return afterCursor;
}

/** The log's own words for its ends are no cursors of a caller. */
function noCursor(): GatewayError {
  return invalidFields([{ path: "after_cursor", message: "is not a cursor" }]);
}

/**
 * Runs a stream until its caller goes away, its caller's token expires or is withdrawn, or the gateway
 * shuts down, and puts the cursor to resume from on whatever ends it early.
 */
async function* resumable<Request extends Start>(
  { call, drain }: StreamOptions,
  asked: () => Request,
  events: (request: Request, signal: AbortSignal) => AsyncIterable<Event>,
): AsyncGenerator<Event> {
  const request = asked();
  // One for all that may end it: a signal costs more memory than all else of a watch at rest.
  const end = new AbortController();
  const { signal } = call;
  const { expiresAtMs, revoked } = call.caller;
  const leave = drain.join((reason) => end.abort(reason));
  const stopExpiry = endAtExpiry(expiresAtMs, end);
  const stopRevoked = endWithAll(revoked, end);
  const stopLeft = endWith(signal, end);
  let cursor: Cursor | undefined = request.after;
  try {
    for await (const event of events(request, end.signal)) {
      cursor = event.cursor;
      yield event;
    }
  } catch (error) {
    throw withResumeCursor(error, cursor);
  } finally {
    leave();
    stopExpiry();
    stopRevoked();
    stopLeft();
    // Lets go of the log even if the stream was never iterated to its live part.
    end.abort(streamOver);
  }
}

/** Told to nobody: a stream that is over has no reader. */
const streamOver = new GatewayError("CANCELLED", "the stream is over");

/** @returns what stops it */
function endWith(signal: AbortSignal | undefined, end: AbortController): () => void {
  if (!signal) return () => undefined;
  const onAbort = () => end.abort(signal.reason);
  if (signal.aborted) onAbort();
  else signal.addEventListener("abort", onAbort);
  return () => signal.removeEventListener("abort", onAbort);
}

/** Streams that end with a signal which many of them share. */
const sharing = new WeakMap<AbortSignal, UnderWay<AbortController>>();

/**
 * The same for a signal of thousands of streams, which is listened to once: to stop listening takes
 * longer the more do, and thousands stop at once when a proxy in front of them goes away.
 * @returns what stops it
 */
function endWithAll(signal: AbortSignal | undefined, end: AbortController): () => void {
  if (!signal || signal.aborted) return endWith(signal, end);
  let streams = sharing.get(signal);
  if (!streams) {
    const all = new UnderWay<AbortController>();
    signal.addEventListener("abort", () => {
      for (const each of all) each.abort(signal.reason);
    });
    sharing.set(signal, all);
    streams = all;
  }
  const member = streams.add(end);
  return () => member.leave();
}

/** The later of what the caller has seen and what the log says; none where none will do. */
function withResumeCursor(error: unknown, seen: Cursor | undefined): unknown {
  if (!(error instanceof GatewayError) || seen === undefined || seen === "earliest") return error;
  if (error.code === "OUT_OF_RANGE" || error.code === "INVALID_ARGUMENT") return error;
  const { resumeCursor = seen } = error.details;
  return new GatewayError(error.code, error.message, {
    ...error.details,
    resumeCursor: resumeCursor > seen ? resumeCursor : seen,
    cause: error.cause,
  });
}

/** A timer cannot wait longer than 2^31 - 1 ms, and does not hear of a clock that was put right. */
const maxTimerMs = 60_000;

function endAtExpiry(expiresAtMs: number | undefined, end: AbortController): () => void {
  if (expiresAtMs === undefined) return () => undefined;
  let timer: NodeJS.Timeout;
  const check = () => {
    const leftMs = expiresAtMs - Date.now();
    if (leftMs > 0) {
      timer = setTimeout(check, Math.min(leftMs, maxTimerMs)).unref();
      return;
    }
    end.abort(
      new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" }),
    );
  };
  check();
  return () => clearTimeout(timer);
}

import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { firstEvent } from "../events/current.ts";
import type { Cursor, EventLog, Topic } from "../events/log.ts";
import { isPayingOperation, setState } from "../events/payment-state.ts";
import { rememberTrace, traceOf } from "../events/trace-of.ts";
import {
  CallOutcome,
  type Event,
  type EventKind,
  EventSchema,
} from "../gen/payments/v1/event_pb.ts";
import { doubtsOf, standingsOf } from "../intents/settle.ts";
import type { IntentStore } from "../intents/store.ts";
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

export interface WatchRequest {
  readonly kind: EventKind;
  readonly externalId: string;
  /** `earliest`: from the oldest event that is kept. */
  readonly after: Cursor | "earliest" | undefined;
  readonly untilFinal: boolean;
}

/**
 * One payment or payout, live: its current state if one is known and no cursor was given, then each
 * event behind it exactly once (contract, section 5).
 */
export function watch(options: StreamOptions, request: WatchRequest): AsyncIterable<Event> {
  const { log, call } = options;
  const { kind, externalId, after, untilFinal } = request;
  const topic: Topic = { kind, externalId };
  return resumable(options, after, async function* (signal) {
    const { account } = call.caller;
    const end = watchEnd(options, request);
    if (after === "latest" || (after === "earliest" && call.resumed)) throw noCursor();
    // The live part is attached before the snapshot is read: what comes between the two is in both,
    // and its cursor tells.
    let from: Cursor | undefined;
    const events = await log.read(account, topic, after ?? "latest", {
      signal: AbortSignal.any([signal, end.signal]),
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: call.onFail,
    });
    if (after !== undefined && after !== "earliest" && untilFinal) {
      // Nothing may ever come behind an event that ended the stream that it came from.
      if (await wasOver(options, request, after)) return;
    }
    const snapshot =
      after === undefined ? await log.snapshot(account, kind, externalId) : undefined;
    const current = snapshot && firstEvent(snapshot);
    call.onOpen?.(current ? undefined : from);
    if (current) {
      const event = create(EventSchema, { ...current, cursor: snapshot.cursor });
      setState(event, snapshot.facts);
      rememberTrace(event, traceOf(current));
      yield event;
      if (await end.isBehind(event)) return;
    }
    try {
      for await (const event of events) {
        if (snapshot && event.cursor <= snapshot.cursor) continue;
        yield event;
        if (await end.isBehind(event)) return;
      }
    } catch (error) {
      if (!end.signal.aborted || signal.aborted) throw error;
    } finally {
      end.stop();
    }
  });
}

/** How often a stream looks whether the call is over that keeps it from its end, in milliseconds. */
const lookMs = 500;

/**
 * Where a stream that goes on until the end is over. A final event is not the end while a call is
 * open; that call may end without a further event, so it is looked for then.
 */
function watchEnd(options: StreamOptions, request: WatchRequest) {
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  const look = (event: Event) => {
    timer = setTimeout(async () => {
      if (await isEnd(options, request, event)) over.abort();
      else if (timer) look(event);
    }, lookMs).unref();
  };
  const stop = () => {
    clearTimeout(timer);
    timer = undefined;
  };
  return {
    /** Aborts when the stream has come to its end without an event. */
    signal: over.signal,
    stop,
    async isBehind(event: Event): Promise<boolean> {
      if (!request.untilFinal) return false;
      stop();
      if (await isEnd(options, request, event)) return true;
      if (event.final && isPaying(event)) look(event);
      return false;
    },
  };
}

/**
 * Whether a stream that goes on until the end is over with this event: an end of an operation that
 * pays, unless a call for the external_id is open, which may end otherwise; or the word that a lost
 * call was not done, or that nobody can tell.
 */
async function isEnd(
  options: StreamOptions,
  { kind, externalId }: WatchRequest,
  event: Event,
): Promise<boolean> {
  if (endingOutcomes.has(event.callOutcome)) return true;
  if (!event.final || !isPaying(event)) return false;
  try {
    const { account } = options.call.caller;
    const { standings } = await standingsOf(options, account, kind, externalId);
    return !doubtsOf(standings).outcomeUnknown;
  } catch {
    // Whether one is open cannot be told; the stream goes on.
    return false;
  }
}

const endingOutcomes: ReadonlySet<CallOutcome> = new Set([
  CallOutcome.NOT_DONE,
  CallOutcome.NEEDS_OPERATOR,
]);

function isPaying({ resource }: Event): boolean {
  return resource.case === "payout" || isPayingOperation(resource.value?.operation);
}

/** Every event of an account, or those of some kinds, behind a cursor or from now on. */
export function stream(
  options: StreamOptions,
  kinds: readonly EventKind[],
  after: Cursor | "earliest" | undefined,
): AsyncIterable<Event> {
  const { log, call } = options;
  return resumable(options, after, async function* (signal) {
    if (after === "latest" || (after === "earliest" && call.resumed)) throw noCursor();
    let from: Cursor | undefined;
    const events = await log.read(call.caller.account, { kinds }, after ?? "latest", {
      signal,
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: call.onFail,
    });
    call.onOpen?.(from);
    yield* events;
  });
}

/** Events of one payment or payout that are looked through for a client's last one. */
const lookBack = 256;

/** Whether a stream that ends has ended with the event of this cursor, and nothing came behind it. */
async function wasOver(
  options: StreamOptions,
  request: WatchRequest,
  cursor: Cursor,
): Promise<boolean> {
  const { log, call } = options;
  const { kind, externalId } = request;
  const { account } = call.caller;
  const history = await log.history(account, kind, externalId, lookBack);
  const last = history.at(-1);
  if (call.resumed) {
    // A client that connects again by itself has had the end already, whatever came behind it.
    const event = history.find((event) => event.cursor === cursor);
    if (event && (await isEnd(options, request, event))) return true;
  } else if (last && last.cursor > cursor) return false;
  if (last?.cursor === cursor && (await isEnd(options, request, last))) return true;
  // It may have begun with the current state, which goes by the cursor of the latest event.
  const snapshot = await log.snapshot(account, kind, externalId);
  if (snapshot?.cursor !== cursor) return false;
  const current = firstEvent(snapshot);
  return current !== undefined && (await isEnd(options, request, current));
}

/** The log's own words for its ends are no cursors of a caller. */
export function noCursor(): GatewayError {
  return invalidFields([{ path: "after_cursor", message: "is not a cursor" }]);
}

/**
 * Runs a stream until its caller goes away, its caller's token expires or is withdrawn, or the gateway
 * shuts down, and puts the cursor to resume from on whatever ends it early.
 */
async function* resumable(
  { call, drain }: StreamOptions,
  after: Cursor | undefined,
  events: (signal: AbortSignal) => AsyncIterable<Event>,
): AsyncGenerator<Event> {
  const end = new AbortController();
  const { expiresAtMs, revoked } = call.caller;
  const place = drain.join();
  const stopExpiry = endAtExpiry(expiresAtMs, end);
  const onRevoked = () => end.abort(revoked?.reason);
  if (revoked?.aborted) onRevoked();
  else revoked?.addEventListener("abort", onRevoked);
  let cursor = after;
  try {
    for await (const event of events(AbortSignal.any([call.signal, place.signal, end.signal]))) {
      cursor = event.cursor;
      yield event;
    }
  } catch (error) {
    throw withResumeCursor(error, cursor);
  } finally {
    place.leave();
    stopExpiry();
    revoked?.removeEventListener("abort", onRevoked);
    // Lets go of the log even if the stream was never iterated to its live part.
    end.abort();
  }
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
const longestTimerMs = 60_000;

function endAtExpiry(expiresAtMs: number | undefined, end: AbortController): () => void {
  if (expiresAtMs === undefined) return () => undefined;
  let timer: NodeJS.Timeout;
  const check = () => {
    const leftMs = expiresAtMs - Date.now();
    if (leftMs > 0) {
      timer = setTimeout(check, Math.min(leftMs, longestTimerMs)).unref();
      return;
    }
    end.abort(
      new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" }),
    );
  };
  check();
  return () => clearTimeout(timer);
}

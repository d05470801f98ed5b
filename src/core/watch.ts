import timers from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { tokenExpired } from "../auth/caller.ts";
import { oncePer } from "../collections/once-per.ts";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import {
  CallOutcome,
  type Event,
  type EventKind,
  EventSchema,
} from "../gen/payments/v1/event_pb.ts";
import type { WatchPaymentRequest } from "../gen/payments/v1/payment_service_pb.ts";
import { currentState, firstEvent } from "../ledger/current.ts";
import type { Known } from "../ledger/intents.ts";
import type { Topic } from "../ledger/log.ts";
import { outcomeFlags } from "../ledger/open-calls.ts";
import { isPayingOperation, statesAfter } from "../ledger/payment-state.ts";
import { rememberTrace, traceOf } from "../ledger/stored-event.ts";
import type { Kind } from "../model/kinds.ts";
import { type Cursor, decodeCursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";

type StreamContext = Pick<Context, "ledger" | "drain">;

/**
 * Streams one payment or payout: first its current state, if one is known and no cursor was given,
 * then each later event exactly once.
 * @throws GatewayError INVALID_ARGUMENT for a cursor that is none
 */
export function watch(
  context: StreamContext,
  call: Call,
  kind: Kind,
  request: Pick<WatchPaymentRequest, "externalId" | "untilFinal" | "afterCursor" | "fromStart">,
): AsyncIterable<Event> {
  const { externalId, untilFinal, afterCursor, fromStart } = request;
  // The log's own word, which is no cursor of a caller.
  if (afterCursor === "earliest" && !fromStart) decodeCursor(afterCursor);
  const after = fromStart ? "earliest" : afterCursor;
  return stream(context, call, { kind, externalId }, after, { untilFinal });
}

/**
 * Streams the events of a topic until its caller goes away, its caller's token expires or is
 * withdrawn, or the gateway shuts down. An error that ends it early carries the cursor to resume from.
 * @param after where it begins. Default: now, and for one payment or payout with the current state
 */
export async function* stream(
  { ledger, drain }: StreamContext,
  call: Call,
  topic: Topic,
  after: Cursor | "earliest" | undefined,
  { untilFinal = false, kinds = [] }: StreamOptions = {},
): AsyncGenerator<Event> {
  if (after === "latest") decodeCursor(after);
  // One controller for all that may end the stream: a signal takes more memory than all the rest of
  // an idle watch does.
  const over = new AbortController();
  const { signal, caller, push } = call;
  const abort = () => over.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  const leave = drain.join((reason) => over.abort(reason));
  const stopExpiry = endAtExpiry(caller.expiresAtMs, over);
  const stopRevoked = endWithAll(caller.revoked, over);
  /** Of the last event sent. */
  let cursor: Cursor | undefined = after;
  try {
    const { account } = caller;
    const read = topic && (() => ledger.known(account, topic.kind, topic.externalId));
    const newest = async () =>
      topic && (await ledger.history(account, topic.kind, topic.externalId, 1))[0];
    const end = untilFinal && read ? createWatchEnd(read, newest) : undefined;
    // Attach the live part before reading the snapshot: an event that arrives between the two is in
    // both, and its cursor shows that.
    let from: Cursor | undefined;
    let told: Known | undefined;
    const isLeftOut = ({ kind, cursor }: Event) =>
      (told !== undefined && cursor <= told.cursor) || (kinds.length > 0 && !kinds.includes(kind));
    const events = await ledger.read(caller.account, topic, after ?? "latest", {
      signal: over.signal,
      push: push && ((event) => isLeftOut(event) || (!end?.mayEndAt(event) && push(event))),
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: call.onFail,
    });
    if (after !== undefined && (await end?.isOverAt(after))) return;
    const known = after === undefined ? await read?.() : undefined;
    const current = known && firstEvent(known);
    // What is known without a current event is not sent, so no live event repeats it.
    told = current && known;
    call.onOpen?.(current ? undefined : from);
    if (topic && told && current) {
      const states = statesAfter(topic.kind, told, outcomeFlags(told).outcomeUnknown);
      const event = create(EventSchema, { ...current, ...states, cursor: told.cursor });
      rememberTrace(event, traceOf(current));
      cursor = event.cursor;
      yield event;
      if (await end?.isOverAfter(event)) return;
    }
    for await (const event of end ? follow(events, end.isDue) : events) {
      if (event && !isLeftOut(event)) {
        cursor = event.cursor;
        yield event;
        if (await end?.isOverAfter(event)) return;
      } else if (!event && (await end?.isOver())) return;
    }
  } catch (error) {
    throw withResumeCursor(error, cursor);
  } finally {
    leave();
    stopExpiry();
    stopRevoked();
    signal.removeEventListener("abort", abort);
    // Detaches from the log even if the stream never reached its live part.
    over.abort(streamOver);
  }
}

interface StreamOptions {
  /** Ends it as `createWatchEnd` says. Default: it does not. */
  readonly untilFinal?: boolean;
  /** Of the events that are sent. Empty, the default: of all. */
  readonly kinds?: readonly EventKind[];
}

/** Never shown: a stream that is over has no reader. */
const streamOver = new GatewayError("CANCELLED", "the stream is over");

/**
 * Yields the events of a log, and undefined whenever `mayChange` and none came for half a second: an
 * open call may end without an event, so whoever waits for that looks again.
 */
export async function* follow(
  events: AsyncIterable<Event>,
  mayChange: () => boolean,
): AsyncGenerator<Event | undefined> {
  const iterator = events[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = iterator.next();
      let arrived: AbortSignal | undefined;
      while (mayChange() && !arrived?.aborted) {
        // Once for each event: it may be awaited for hours, and would keep something of each pause.
        arrived ??= abortedWith(next);
        await timers.setTimeout(lookMs, undefined, { signal: arrived, ref: false }).catch(() => {});
        if (!arrived.aborted) yield undefined;
      }
      const { done, value } = await next;
      if (done) return;
      yield value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** A signal that aborts when the promise settles. */
function abortedWith(promise: Promise<unknown>): AbortSignal {
  const controller = new AbortController();
  const abort = () => controller.abort();
  promise.then(abort, abort);
  return controller.signal;
}

const lookMs = 500;

/**
 * Decides when a stream with `until_final` ends: after the final event of an operation that pays,
 * unless a call for the external_id is open, which may end otherwise; or after the event that a
 * lost call was NOT_DONE or NEEDS_OPERATOR. An open call may end without a further event, so the
 * stream checks for that; before it ends it yields all events stored by then.
 */
function createWatchEnd(read: () => Promise<Known>, newest: () => Promise<Event | undefined>) {
  /** The latest operation that pays has ended: the stream ends once no call is open. */
  let isDue = false;
  /** The cursor of the last event that the reader received. */
  let place: Cursor = "";

  /**
   * Whether the stream is over: after its last event (`isEnd`), or since no further one came. False if
   * that cannot be read.
   */
  async function isOver(isEnd = false): Promise<boolean> {
    try {
      if (!isDue || outcomeFlags(await read()).outcomeUnknown) return false;
      // What has been stored during that look is still to be sent.
      return isEnd || place >= (await read()).cursor;
    } catch {
      return false;
    }
  }

  return {
    isOver,
    isDue: () => isDue,
    /** Whether a stream that starts at this cursor is over before it begins. */
    async isOverAt(after: Cursor | "earliest"): Promise<boolean> {
      place = after === "earliest" ? "" : after;
      const last = await newest();
      if (last?.cursor === place && endsCall(last)) return true;
      const current = currentState(await read());
      isDue = current !== undefined && isFinal(current.event);
      return isOver();
    },
    /** False if the stream certainly continues after this event; else ask `isOverAfter`. */
    mayEndAt: (event: Event) => isDue || isFinal(event) || endsCall(event),
    /** Whether the stream is over after this event, which its reader has received. */
    async isOverAfter(event: Event): Promise<boolean> {
      place = event.cursor;
      if (isPaying(event)) isDue = event.final;
      return endsCall(event) || isOver(isFinal(event));
    },
  };
}

/** Whether no further event is expected of a lost call: it was not done, or an operator has to look. */
export function endsCall({ callOutcome }: Event): boolean {
  return callOutcome === CallOutcome.NOT_DONE || callOutcome === CallOutcome.NEEDS_OPERATOR;
}

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

/** The streams that end when a shared signal aborts. */
const sharing = oncePer((signal: AbortSignal) => {
  const streams = new UnderWay<AbortController>();
  signal.addEventListener("abort", () => {
    for (const each of streams) each.abort(signal.reason);
  });
  return streams;
});

/**
 * Aborts `end` with a signal that thousands of streams share, which gets one listener. Removing a
 * listener takes longer the more there are, and thousands of streams stop at once when a proxy in
 * front of them goes away.
 * @returns a function that stops listening
 */
function endWithAll(signal: AbortSignal | undefined, end: AbortController): () => void {
  if (signal?.aborted) end.abort(signal.reason);
  const member = signal && sharing(signal).add(end);
  return () => member?.leave();
}

/**
 * Adds the cursor to resume from: the later of the last event sent and the log's own position. An
 * error about the cursor itself gets none.
 */
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

/**
 * Longest pause between looks at the clock: a timer cannot wait longer than 2^31 - 1 ms, and does not
 * notice that the clock was corrected.
 */
const expiryCheckMs = 60_000;

function endAtExpiry(expiresAtMs: number | undefined, end: AbortController): () => void {
  if (expiresAtMs === undefined) return () => undefined;
  let timer: NodeJS.Timeout;
  const check = () => {
    const leftMs = expiresAtMs - Date.now();
    if (leftMs > 0) {
      timer = setTimeout(check, Math.min(leftMs, expiryCheckMs)).unref();
      return;
    }
    end.abort(tokenExpired());
  };
  check();
  return () => clearTimeout(timer);
}

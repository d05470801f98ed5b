import timers from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
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
import type { Snapshot } from "../ledger/log.ts";
import { outcomeFlags } from "../ledger/open-calls.ts";
import { isPayingOperation, statesAfter } from "../ledger/payment-state.ts";
import { rememberTrace, traceOf } from "../ledger/stored-event.ts";
import type { Kind } from "../model/kinds.ts";
import { type Cursor, decodeCursor } from "../stores/cursor.ts";
import type { Context } from "./context.ts";
import type { Call } from "./core.ts";

type StreamContext = Pick<Context, "ledger" | "drain">;

/** The payment or payout that a watch is of, or that a call waits for. */
export interface Awaited {
  readonly account: string;
  readonly kind: Kind;
  readonly externalId: string;
}

/** Where a stream begins. `earliest`: with the oldest event that is kept. */
type Start = Cursor | "earliest" | undefined;

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
  const { ledger } = context;
  const { externalId, untilFinal, afterCursor, fromStart } = request;
  // The log's own word, which is no cursor of a caller.
  if (afterCursor === "earliest" && !fromStart) decodeCursor(afterCursor);
  const after = fromStart ? "earliest" : afterCursor;
  return resumable(context, call, after, async function* (signal) {
    const { account } = call.caller;
    const topic = { kind, externalId };
    const end = untilFinal ? createWatchEnd(context, { account, ...topic }) : undefined;
    // Attach the live part before reading the snapshot: an event that arrives between the two is in
    // both, and its cursor shows that.
    let from: Cursor | undefined;
    let told: Snapshot | undefined;
    const isKnown = (event: Event) => told !== undefined && event.cursor <= told.cursor;
    const { push } = call;
    const events = await ledger.read(account, topic, after ?? "latest", {
      signal,
      push: push && ((event) => isKnown(event) || (!end?.mayEndAt(event) && push(event))),
      onStart: (place) => {
        from = after === undefined ? place : undefined;
      },
      onFail: call.onFail,
    });
    if (after !== undefined && (await end?.isOverAt(after))) return;
    const known = after === undefined ? await ledger.known(account, kind, externalId) : undefined;
    const current = known && firstEvent(known);
    // A snapshot without a current event is not sent, so no live event repeats it.
    told = current && known.snapshot;
    call.onOpen?.(current ? undefined : from);
    if (known && told && current) {
      const states = statesAfter(kind, told, outcomeFlags(known).outcomeUnknown);
      const event = create(EventSchema, { ...current, ...states, cursor: told.cursor });
      rememberTrace(event, traceOf(current));
      yield event;
      if (await end?.isOverAfter(event)) return;
    }
    for await (const event of end ? follow(events, end.isDue) : events) {
      if (event && !isKnown(event)) {
        yield event;
        if (await end?.isOverAfter(event)) return;
      } else if (!event && (await end?.isOver())) return;
    }
  });
}

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
function createWatchEnd({ ledger }: StreamContext, { account, kind, externalId }: Awaited) {
  /** The latest operation that pays has ended: the stream ends once no call is open. */
  let isDue = false;
  /** The cursor of the last event that the reader received. */
  let place: Cursor = "";
  const known = () => ledger.known(account, kind, externalId);
  const newest = async () => (await ledger.history(account, kind, externalId, 1))[0];

  /** True also when the stores cannot be read: the stream then continues. */
  const isCallOpen = () =>
    known().then(
      (known) => outcomeFlags(known).outcomeUnknown,
      () => true,
    );

  /** Whether the stream is over although no further event came. False if that cannot be read. */
  async function isOver(): Promise<boolean> {
    if (!isDue || (await isCallOpen())) return false;
    try {
      return place >= ((await newest())?.cursor ?? "");
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
      if (last?.cursor === place && endingOutcomes.has(last.callOutcome)) return true;
      const { snapshot } = await known();
      const current = snapshot && currentState(snapshot);
      isDue = current !== undefined && isFinal(current.event);
      return isOver();
    },
    /** False if the stream certainly continues after this event; else ask `isOverAfter`. */
    mayEndAt: (event: Event) => isDue || isFinal(event) || endingOutcomes.has(event.callOutcome),
    /** Whether the stream is over after this event, which its reader has received. */
    async isOverAfter(event: Event): Promise<boolean> {
      place = event.cursor;
      if (endingOutcomes.has(event.callOutcome)) return true;
      if (isFinal(event) && !(await isCallOpen())) return true;
      if (isPaying(event)) isDue = event.final;
      return isOver();
    },
  };
}

/** Outcomes of a call after which no further event about it is expected. */
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

/** Streams the events of an account, of some kinds or of all, after a cursor or from now on. */
export function stream(
  context: StreamContext,
  call: Call,
  { kinds, after }: { readonly kinds: readonly EventKind[]; readonly after: Start },
): AsyncIterable<Event> {
  return resumable(context, call, after, async function* (signal) {
    let from: Cursor | undefined;
    const events = await context.ledger.read(call.caller.account, { kinds }, after ?? "latest", {
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

/**
 * Runs a stream until its caller goes away, its caller's token expires or is withdrawn, or the
 * gateway shuts down. An error that ends it early carries the cursor to resume from.
 */
async function* resumable(
  { drain }: StreamContext,
  call: Call,
  after: Start,
  events: (signal: AbortSignal) => AsyncIterable<Event>,
): AsyncGenerator<Event> {
  if (after === "latest") decodeCursor(after);
  // One controller for all that may end the stream: a signal takes more memory than all the rest of
  // an idle watch does.
  const end = new AbortController();
  const { signal, caller } = call;
  const abort = () => end.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  const leave = drain.join((reason) => end.abort(reason));
  const stopExpiry = endAtExpiry(caller.expiresAtMs, end);
  const stopRevoked = endWithAll(caller.revoked, end);
  let cursor: Cursor | undefined = after;
  try {
    for await (const event of events(end.signal)) {
      cursor = event.cursor;
      yield event;
    }
  } catch (error) {
    throw withResumeCursor(error, cursor);
  } finally {
    leave();
    stopExpiry();
    stopRevoked();
    signal.removeEventListener("abort", abort);
    // Detaches from the log even if the stream never reached its live part.
    end.abort(streamOver);
  }
}

/** Never shown: a stream that is over has no reader. */
const streamOver = new GatewayError("CANCELLED", "the stream is over");

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

/** A timer cannot wait longer than 2^31 - 1 ms, and does not notice a corrected clock. */
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

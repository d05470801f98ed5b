import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { firstEvent } from "../events/current.ts";
import type { Cursor, EventLog, Topic } from "../events/log.ts";
import { type Event, type EventKind, EventSchema } from "../gen/payments/v1/event_pb.ts";
import type { Call } from "./core.ts";

export interface StreamOptions {
  readonly log: EventLog;
  readonly call: Call;
  /** Aborts when the gateway shuts down. */
  readonly drain: AbortSignal;
}

export interface WatchRequest {
  readonly kind: EventKind;
  readonly externalId: string;
  readonly after: Cursor | undefined;
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
    // The live part is attached before the snapshot is read: what comes between the two is in both,
    // and its cursor tells.
    const events = await log.read(account, topic, after ?? "latest", { signal });
    const snapshot =
      after === undefined ? await log.snapshot(account, kind, externalId) : undefined;
    const current = snapshot && firstEvent(snapshot);
    if (current) {
      const event = create(EventSchema, { ...current, cursor: snapshot.cursor });
      yield event;
      if (untilFinal && event.final) return;
    }
    for await (const event of events) {
      if (snapshot && event.cursor <= snapshot.cursor) continue;
      yield event;
      if (untilFinal && event.final) return;
    }
  });
}

/** Every event of an account, or those of some kinds, behind a cursor or from now on. */
export function stream(
  options: StreamOptions,
  kinds: readonly EventKind[],
  after: Cursor | "earliest" | undefined,
): AsyncIterable<Event> {
  const { log, call } = options;
  return resumable(options, after, async function* (signal) {
    yield* await log.read(call.caller.account, { kinds }, after ?? "latest", { signal });
  });
}

/**
 * Runs a stream until its caller goes away, its caller's token expires or the gateway shuts down,
 * and puts the cursor to resume from on whatever ends it early.
 */
async function* resumable(
  { call, drain }: StreamOptions,
  after: Cursor | undefined,
  events: (signal: AbortSignal) => AsyncIterable<Event>,
): AsyncGenerator<Event> {
  const end = new AbortController();
  const expiry = endAtExpiry(call.caller.expiresAtMs, end);
  let cursor = after;
  try {
    for await (const event of events(AbortSignal.any([call.signal, drain, end.signal]))) {
      cursor = event.cursor;
      yield event;
    }
  } catch (error) {
    throw withResumeCursor(error, cursor);
  } finally {
    clearTimeout(expiry);
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

/** A timer cannot wait longer than 2^31 - 1 ms; tokens do not live that long, but a clock may lie. */
const longestTimerMs = 2 ** 31 - 1;

function endAtExpiry(
  expiresAtMs: number | undefined,
  end: AbortController,
): NodeJS.Timeout | undefined {
  if (expiresAtMs === undefined) return undefined;
  const inMs = Math.min(Math.max(expiresAtMs - Date.now(), 0), longestTimerMs);
  return setTimeout(() => {
    end.abort(
      new GatewayError("UNAUTHENTICATED", "the token has expired", { reason: "TOKEN_EXPIRED" }),
    );
  }, inMs).unref();
}

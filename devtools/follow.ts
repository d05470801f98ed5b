import { setTimeout as delay } from "node:timers/promises";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../src/gen/google/rpc/error_details_pb.ts";
import type { Event } from "../src/gen/payments/v1/event_pb.ts";

export interface FollowOptions {
  /**
   * Opens a stream: after a cursor, from the oldest event kept (`earliest`), or from now on.
   * `onHeader` receives the headers of the answer.
   */
  readonly open: (
    after: string | undefined,
    options: { readonly onHeader: (headers: Headers) => void },
  ) => AsyncIterable<{ readonly event?: Event | undefined }>;
  /** Where to begin. Default: from now on. */
  readonly after?: string | undefined;
  /** Ends the generator, without an error. */
  readonly signal: AbortSignal;
  /** Called when the stream broke; it is opened again after the pause. */
  readonly onPause: (error: ConnectError, pauseMs: number) => void;
  /** Called when the gateway no longer has the last cursor: events may be missing here. */
  readonly onGap: () => void;
}

/**
 * Yields the events of an account and reopens the stream whenever it breaks. Each stream starts
 * after the last event that was yielded, or where the first one started, so no event is lost or
 * repeated (but see `onGap`). Pauses
 * between attempts double, up to 10 s, with full jitter.
 * @throws ConnectError if a retry is useless, or if the gateway no longer has the cursor `after`
 */
export async function* followEvents(options: FollowOptions): AsyncGenerator<Event, void> {
  const { open, signal } = options;
  let cursor = options.after;
  let failures = 0;
  while (!signal.aborted) {
    let failure: ConnectError;
    const onHeader = (headers: Headers) => {
      cursor ??= headers.get("x-start-cursor") ?? undefined;
    };
    try {
      for await (const { event } of open(cursor, { onHeader })) {
        if (!event) continue;
        failures = 0;
        yield event;
        cursor = event.cursor;
      }
      failure = new ConnectError("the stream ended", Code.Unavailable);
    } catch (error) {
      failure = ConnectError.from(error);
    }
    if (signal.aborted) return;
    if (hopeless.has(failure.code)) throw failure;
    if (failure.code === Code.OutOfRange) {
      // The cursor came from the caller, who has to decide how to go on without it.
      if (cursor === options.after) throw failure;
      options.onGap();
      cursor = "earliest";
    }
    cursor ??= resumeCursorOf(failure);
    const maxMs = Math.min(firstPauseMs * 2 ** failures, maxPauseMs);
    const pauseMs = Math.max(Math.random() * maxMs, retryAfterMs(failure));
    failures += 1;
    options.onPause(failure, pauseMs);
    await delay(pauseMs, undefined, { signal }).catch(() => {});
  }
}

const firstPauseMs = 250;
const maxPauseMs = 10_000;

/** Errors that a retry would get again. */
const hopeless: ReadonlySet<Code> = new Set([
  Code.InvalidArgument,
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.Unimplemented,
  Code.NotFound,
]);

function resumeCursorOf(error: ConnectError): string | undefined {
  return error.findDetails(ErrorInfoSchema)[0]?.metadata.resume_cursor || undefined;
}

function retryAfterMs(error: ConnectError): number {
  const retryDelay = error.findDetails(RetryInfoSchema)[0]?.retryDelay;
  return retryDelay ? Math.min(durationMs(retryDelay), maxPauseMs) : 0;
}

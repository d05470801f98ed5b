import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import type { PaymentsGateway } from "./client.ts";
import { failureOf } from "./failure.ts";
import { ErrorInfoSchema } from "./gen/google/rpc/error_details_pb.ts";
import type { Event, EventKind } from "./gen/payments/v1/event_pb.ts";

export interface WatchOptions {
  /** Start after this event. Default: the current state first, then the events that follow. */
  readonly afterCursor?: string;
  /**
   * End when the gateway considers the payment or payout settled; the `state` of the last event is
   * its outcome. Default: true for one payment or payout.
   */
  readonly untilFinal?: boolean;
  /** Ends the watch: the loop over it ends without an error. */
  readonly signal?: AbortSignal;
  readonly headers?: NonNullable<CallOptions["headers"]>;
  /** Called when the connection is cut; the watch reconnects after `delayMs`. */
  readonly onReconnect?: (event: {
    readonly error: ConnectError;
    readonly delayMs: number;
  }) => void;
}

/**
 * Yields every event of a payment once and in order: after a cut connection, the watch resumes
 * after the last event that it yielded. Ends when the gateway considers the payment settled; a
 * look-up or a refund does not end it.
 *
 * @throws ConnectError when a retry is useless: the caller is not allowed, the request is invalid,
 *   or the cursor is older than the events kept (`failureOf(error).kind === "cursor_lost"`).
 */
export function watchPayment(gateway: PaymentsGateway, externalId: string, options?: WatchOptions) {
  const untilFinal = options?.untilFinal ?? true;
  return resumed({ ...options, untilFinal }, (afterCursor, call) =>
    gateway.payments.watchPayment({ externalId, untilFinal, ...afterCursor }, call),
  );
}

/** Like {@link watchPayment}, for a payout. */
export function watchPayout(gateway: PaymentsGateway, externalId: string, options?: WatchOptions) {
  const untilFinal = options?.untilFinal ?? true;
  return resumed({ ...options, untilFinal }, (afterCursor, call) =>
    gateway.payouts.watchPayout({ externalId, untilFinal, ...afterCursor }, call),
  );
}

/**
 * Yields every event of the merchant account, without end. Without `afterCursor` it begins when the
 * first connection stands, and misses nothing from then on. Store the cursor of the last event that
 * you processed, and pass it as `afterCursor` at the next start; `earliest` starts with the oldest
 * event kept.
 */
export function watchEvents(
  gateway: PaymentsGateway,
  options?: Omit<WatchOptions, "untilFinal"> & { readonly kinds?: EventKind[] },
) {
  const kinds = options?.kinds ?? [];
  return resumed({ ...options, untilFinal: false }, (afterCursor, call) =>
    gateway.events.streamEvents({ kinds, ...afterCursor }, call),
  );
}

type Open = (
  afterCursor: { afterCursor?: string },
  call: CallOptions,
) => AsyncIterable<{ event?: Event | undefined }>;

async function* resumed(
  options: WatchOptions & { readonly untilFinal: boolean },
  open: Open,
): AsyncGenerator<Event, void, undefined> {
  let cursor = options.afterCursor;
  let cuts = 0;
  // A separate controller, so that leaving the caller's loop early ends the call.
  const ended = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, ended.signal]) : ended.signal;
  const { headers } = options;
  // Where the stream began, for a cut before its first event.
  const onHeader = (header: Headers) => {
    cursor ??= header.get("x-start-cursor") ?? undefined;
  };
  const call = { signal, onHeader, ...(headers ? { headers } : {}) };
  try {
    while (!signal.aborted) {
      try {
        const at = cursor === undefined ? {} : { afterCursor: cursor };
        for await (const { event } of open(at, call)) {
          if (!event) continue;
          cursor = event.cursor;
          cuts = 0;
          yield event;
        }
        // Only the gateway ends a stream without an error, also at once: if the payment was settled
        // by the event of `afterCursor`, none follows.
        if (options.untilFinal) return;
        throw new ConnectError("the stream ended", Code.Unavailable);
      } catch (thrown) {
        if (signal.aborted) return;
        const error = ConnectError.from(thrown);
        const failure = failureOf(error);
        if (failure.kind !== "no_answer" && !resumable.has(error.code)) throw error;
        cursor ??= resumeCursorOf(error);
        const delayMs = pauseMs(cuts++, failure);
        options.onReconnect?.({ error, delayMs });
        await sleep(delayMs, signal);
      }
    }
  } finally {
    ended.abort();
  }
}

/** The cursor that an error of the gateway carries. */
function resumeCursorOf(error: ConnectError): string | undefined {
  return error.findDetails(ErrorInfoSchema)[0]?.metadata.resume_cursor || undefined;
}

/** Codes of the gateway's errors after which a retry may succeed. */
const resumable = new Set([
  Code.Unavailable,
  Code.ResourceExhausted,
  Code.Aborted,
  Code.Canceled,
  Code.DeadlineExceeded,
  Code.Internal,
  Code.Unknown,
]);

const firstPauseMs = 200;
const longestPauseMs = 10_000;

/** Full jitter, so that clients that lost their connections together do not reconnect together. */
function pauseMs(cuts: number, failure: ReturnType<typeof failureOf>): number {
  const jittered = Math.random() * Math.min(longestPauseMs, firstPauseMs * 2 ** cuts);
  const atLeast = failure.kind === "not_now" ? (failure.retryAfterMs ?? 0) : 0;
  return Math.round(atLeast + jittered);
}

function sleep(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done);
    if (signal.aborted) done();
  });
}

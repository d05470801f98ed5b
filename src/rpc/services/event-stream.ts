import { setTimeout as sleep } from "node:timers/promises";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext } from "@connectrpc/connect";
import type { Call } from "../../core/core.ts";
import { errorOfAbort } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import { callOf } from "../gated-call.ts";

/**
 * Turns a watch into the messages of a streaming method. It throws after the call's signal has
 * aborted, since the core's iteration then just stops and would look like a complete stream. Events
 * that are stored while it waits for the next one may be pushed past it (`Call.push`).
 * @param asked the request's heartbeat: the silence after which a message without an event is sent;
 * without it, none is sent
 * @throws GatewayError the core's error, or the one for the abort of the call's signal
 */
export async function* eventStream(
  open: (call: Call) => AsyncIterable<Event>,
  context: Pick<HandlerContext, "values">,
  asked: Heartbeat,
): AsyncGenerator<{ event?: Event }, void> {
  const call = callOf(context);
  const heartbeatMs = heartbeatMsOf(asked);
  const silence: Silence = { sinceMs: 0 };
  const { push } = call;
  const events = open({
    ...call,
    push:
      push && heartbeatMs !== undefined
        ? (event) => {
            const isTaken = push(event);
            if (isTaken) silence.sinceMs = performance.now();
            return isTaken;
          }
        : push,
  });
  if (heartbeatMs === undefined) for await (const event of events) yield { event };
  else yield* withHeartbeats(events, heartbeatMs, silence);
  if (call.signal.aborted) throw errorOfAbort(call.signal);
}

/** The heartbeat fields of a request: an interval, as a duration or in seconds. */
interface Heartbeat {
  readonly heartbeat?: Duration | undefined;
  readonly heartbeatSeconds?: number | undefined;
}

function heartbeatMsOf({ heartbeat, heartbeatSeconds }: Heartbeat): number | undefined {
  if (heartbeat) return durationMs(heartbeat);
  return heartbeatSeconds === undefined ? undefined : heartbeatSeconds * 1_000;
}

interface Silence {
  /** When the silence began: the last time a message was awaited or an event was pushed. */
  sinceMs: number;
}

/** Yields a heartbeat only when its reader asks for a message, so that none queue up. */
async function* withHeartbeats(
  events: AsyncIterable<Event>,
  intervalMs: number,
  silence: Silence,
): AsyncGenerator<{ event?: Event }, void> {
  const iterator = events[Symbol.asyncIterator]();
  let pending: ReturnType<typeof iterator.next> | undefined;
  try {
    for (;;) {
      pending ??= iterator.next();
      silence.sinceMs = performance.now();
      let result: Awaited<typeof pending> | undefined;
      // Wait at least once: if the interval is invalid, the first outcome is the core's refusal.
      for (let leftMs = Math.max(intervalMs, 1); result === undefined && leftMs > 0; ) {
        result = await within(pending, leftMs);
        leftMs = silence.sinceMs + intervalMs - performance.now();
      }
      if (result === undefined) {
        yield {};
        continue;
      }
      pending = undefined;
      if (result.done) return;
      yield { event: result.value };
    }
  } finally {
    pending?.catch(() => undefined);
    await iterator.return?.();
  }
}

async function within<T>(outcome: Promise<T>, ms: number): Promise<T | undefined> {
  const over = new AbortController();
  try {
    return await Promise.race([outcome, sleep(ms, undefined, { signal: over.signal })]);
  } finally {
    over.abort();
  }
}

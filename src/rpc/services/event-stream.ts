import { setTimeout as sleep } from "node:timers/promises";
import { errorOfAbort } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";

/**
 * A watch as the answer of a streaming method. An iteration that merely stops when its signal aborts
 * must not look like a stream that came to its end.
 * @param heartbeatSeconds silence after which a message without an event is sent; undefined: never
 * @throws GatewayError what the core threw, or what the abort of `signal` means
 */
export async function* eventStream(
  events: AsyncIterable<Event>,
  signal: AbortSignal,
  heartbeatSeconds?: number,
): AsyncGenerator<{ event?: Event }, void> {
  if (heartbeatSeconds === undefined) for await (const event of events) yield { event };
  else yield* withHeartbeats(events, heartbeatSeconds * 1_000);
  if (signal.aborted) throw errorOfAbort(signal);
}

/** A heartbeat is made only when its reader asks for a message, so that none queue up. */
async function* withHeartbeats(
  events: AsyncIterable<Event>,
  intervalMs: number,
): AsyncGenerator<{ event?: Event }, void> {
  const iterator = events[Symbol.asyncIterator]();
  let pending: ReturnType<typeof iterator.next> | undefined;
  try {
    for (;;) {
      pending ??= iterator.next();
      const result = await within(pending, intervalMs);
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

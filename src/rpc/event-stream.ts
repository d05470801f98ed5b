import { errorOfAbort } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * A watch as the answer of a streaming method. An iteration that merely stops when its signal aborts
 * must not look like a stream that came to its end.
 * @throws GatewayError what the core threw, or what the abort of `signal` means
 */
export async function* eventStream(
  events: AsyncIterable<Event>,
  signal: AbortSignal,
): AsyncGenerator<{ event: Event }, void> {
  for await (const event of events) yield { event };
  if (signal.aborted) throw errorOfAbort(signal);
}

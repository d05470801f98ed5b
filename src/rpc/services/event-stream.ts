import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import type { Call } from "../../core/core.ts";
import { errorOfAbort } from "../../errors.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import type { ServiceCall } from "../methods.ts";

/**
 * Turns a watch into the messages of a streaming method. It throws after the call's signal has
 * aborted, since the core's iteration then just stops and would look like a complete stream. Events
 * that are stored while it waits for the next one may be pushed past it (`Call.push`), as heartbeats
 * are.
 * @param asked the request's heartbeat: the silence after which a message without an event is sent;
 * without it, none is sent
 * @throws GatewayError the core's error, or the one for the abort of the call's signal
 */
export async function* eventStream(
  open: (call: Call) => AsyncIterable<Event>,
  call: ServiceCall,
  asked: Heartbeat,
): AsyncGenerator<{ event: Event }, void> {
  const { beat, push } = call;
  const intervalMs = heartbeatMsOf(asked);
  // Not by `Heartbeats`, which have one interval for all streams. The core refuses 0 and less.
  const silence = beat && intervalMs > 0 ? setInterval(beat, intervalMs) : undefined;
  const pushed = (event: Event) => {
    const isTaken = push?.(event) ?? false;
    if (isTaken) silence?.refresh();
    return isTaken;
  };
  try {
    for await (const event of open({ ...call, push: push && pushed })) {
      silence?.refresh();
      yield { event };
    }
  } finally {
    clearInterval(silence);
  }
  if (call.signal.aborted) throw errorOfAbort(call.signal);
}

/** The heartbeat fields of a request: an interval, as a duration or in seconds. */
interface Heartbeat {
  readonly heartbeat?: Duration | undefined;
  readonly heartbeatSeconds?: number | undefined;
}

function heartbeatMsOf({ heartbeat, heartbeatSeconds = 0 }: Heartbeat): number {
  return heartbeat ? durationMs(heartbeat) : heartbeatSeconds * 1_000;
}

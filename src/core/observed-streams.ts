import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { traceOf } from "../ledger/stored-event.ts";
import { activeSpan } from "../telemetry/tracing/active-span.ts";
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";
import type { Call, Core } from "./core.ts";

/** Receives what happens to live streams of events, for metrics. */
export interface StreamObserver {
  /** A stream was opened. */
  onStream(transport: string): OpenStream;
}

export interface OpenStream {
  /** The edge took an event. */
  delivered(): void;
  /**
   * The stream is over. `why` is `completed`, `left` (by its reader) or the code of an error, whose
   * reason is `reason`.
   */
  ended(why: string, reason: string | undefined): void;
}

type Streams = Pick<Core, "watchPayment" | "watchPayout" | "streamEvents">;

/**
 * Reports the streams to the observer, and traces each delivery of an event as a span, from when
 * the event is available until the edge asks for the next one. It links to the span that first
 * reported the event.
 */
export function observedStreams<Cases extends Streams>(
  cases: Cases,
  tracing: Tracing,
  observer: StreamObserver,
): Cases {
  const observed =
    <Request>(open: (request: Request, call: Call) => AsyncIterable<Event>) =>
    (request: Request, call: Call) =>
      deliver((ownCall) => open(request, ownCall), call, tracing, observer);
  return {
    ...cases,
    watchPayment: observed(cases.watchPayment),
    watchPayout: observed(cases.watchPayout),
    streamEvents: observed(cases.streamEvents),
  };
}

function deliver(
  open: (call: Call) => AsyncIterable<Event>,
  call: Call,
  tracing: Tracing,
  observer: StreamObserver,
): AsyncIterable<Event> {
  const { transport = "unknown" } = call;
  // A reader that stops reading is cut off and never receives the error, so the error is kept here.
  let failure: Error | undefined;
  let stream: OpenStream | undefined;
  const { push } = call;
  const events = open({
    ...call,
    onFail(error) {
      if (!call.signal.aborted) failure ??= error;
      call.onFail?.(error);
    },
    push:
      push &&
      ((event) => {
        const span = startSpan(event);
        const isTaken = push(event);
        // An event that is not taken now is yielded, and reported, later.
        if (isTaken) {
          stream?.delivered();
          span.end();
        }
        return isTaken;
      }),
  });
  // Read here, since the edges ask for events from unrelated async contexts.
  const parent: Span | "root" = activeSpan.getStore() ?? "root";
  const startSpan = (event: Event) =>
    tracing.start("deliver event", {
      kind: "internal",
      parent,
      links: [traceOf(event)],
      attributes: { "payments_gateway.transport": transport },
    });

  return (async function* () {
    stream = observer.onStream(transport);
    let error: unknown;
    let isCompleted = false;
    try {
      for await (const event of events) {
        const span = startSpan(event);
        try {
          yield event;
          stream.delivered();
        } finally {
          span.end();
        }
      }
      isCompleted = true;
    } catch (thrown) {
      error = thrown;
      throw thrown;
    } finally {
      stream.ended(...whyOf(isCompleted, error ?? failure));
    }
  })();
}

function whyOf(isCompleted: boolean, error: unknown): [why: string, reason: string | undefined] {
  if (isCompleted) return ["completed", undefined];
  if (error === undefined) return ["left", undefined];
  const known = error instanceof GatewayError ? error : undefined;
  return [known?.code ?? "INTERNAL", known?.details.reason];
}

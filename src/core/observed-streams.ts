import { GatewayError } from "../errors.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import { traceOf } from "../ledger/stored-event.ts";
import type { Report } from "../report.ts";
import { activeSpan, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import type { Call } from "./core.ts";

/**
 * Opens a stream and reports it, and traces each delivery of an event as a span, from when
 * the event is available until the edge asks for the next one. It links to the span that first
 * reported the event.
 */
export function observedStream(
  open: (call: Call) => AsyncIterable<Event>,
  call: Call,
  { tracing, report }: { readonly tracing: Tracing; readonly report: Report },
): AsyncIterable<Event> {
  const { transport = "unknown", push } = call;
  // Read here, since the edges ask for events from unrelated async contexts.
  const parent: Span | "root" = activeSpan.getStore() ?? "root";
  const startSpan = (event: Event) =>
    tracing.start("deliver event", {
      kind: "internal",
      parent,
      links: [traceOf(event)],
      attributes: { "payments_gateway.transport": transport },
    });
  // A reader that stops reading is cut off and never receives the error, so the error is kept here.
  let failure: unknown;
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
          report("streamDelivered", { transport });
          span.end();
        }
        return isTaken;
      }),
  });

  return (async function* () {
    report("streamOpened", { transport });
    let reason = "left";
    try {
      for await (const event of events) {
        const span = startSpan(event);
        try {
          yield event;
          report("streamDelivered", { transport });
        } finally {
          span.end();
        }
      }
      reason = "completed";
      failure = undefined;
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      const known = failure instanceof GatewayError ? failure : undefined;
      if (failure !== undefined && reason === "left") reason = known?.code ?? "INTERNAL";
      report("streamEnded", { transport, reason, detail: known?.details.reason });
    }
  })();
}

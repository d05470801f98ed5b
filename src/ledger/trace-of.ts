import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * The `traceparent` of the span that appended an event; spans that deliver the event link to it. It
 * is kept outside the message, so that no client receives it.
 */
export function traceOf(event: Event): string | undefined {
  return traces.get(event);
}

export function rememberTrace(event: Event, traceparent: string | undefined): void {
  if (traceparent !== undefined) traces.set(event, traceparent);
}

const traces = new WeakMap<Event, string>();

import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * Which span made an event known, as a `traceparent`: those who deliver it link to that. It is kept
 * beside the event and is no part of it, so that no reader is shown it.
 */
export function traceOf(event: Event): string | undefined {
  return traces.get(event);
}

export function rememberTrace(event: Event, traceparent: string | undefined): void {
  if (traceparent !== undefined) traces.set(event, traceparent);
}

const traces = new WeakMap<Event, string>();

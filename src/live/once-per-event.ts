import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * Makes something of each event once for all watchers. It remembers only the last result: an event
 * goes to all watchers before the next one does.
 */
export function oncePerEvent<Made>(make: (event: Event) => Made): (event: Event) => Made {
  let last: { readonly event: Event; readonly made: Made } | undefined;
  return (event) => {
    if (last?.event !== event) last = { event, made: make(event) };
    return last.made;
  };
}

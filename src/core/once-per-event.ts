import type { Event } from "../gen/payments/v1/event_pb.ts";

/**
 * Makes something of each event once for all who watch it: an event goes to all of them before the
 * next one does, so that no more than the last is remembered.
 */
export function oncePerEvent<Made>(make: (event: Event) => Made): (event: Event) => Made {
  let last: { readonly event: Event; readonly made: Made } | undefined;
  return (event) => {
    if (last?.event !== event) last = { event, made: make(event) };
    return last.made;
  };
}

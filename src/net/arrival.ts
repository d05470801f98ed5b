import type { EventEmitter } from "node:events";
import type { Place } from "./admission.ts";

/** How long a request may take to arrive before it counts as waiting for its client. */
const graceMs = 100;

/**
 * A request whose body is late must not hold the place of one that is there. What is returned is
 * called when the body has arrived, or never will.
 */
export function countArrival(place: Place): () => void {
  const late = setTimeout(place.suspend, graceMs);
  return () => {
    clearTimeout(late);
    place.resume();
  };
}

/** The same for a request whose events tell. */
export function suspendWhileArriving(request: EventEmitter, place: Place): void {
  const arrived = countArrival(place);
  request.once("end", arrived);
  request.once("close", arrived);
}

import type { EventEmitter } from "node:events";
import type { Place } from "./admission.ts";

/** How long a request may take to arrive before it counts as waiting for its client. */
const graceMs = 100;

/** A request whose body is late must not hold the place of one that is there. */
export function suspendWhileArriving(request: EventEmitter, place: Place): void {
  const late = setTimeout(place.suspend, graceMs);
  request.once("end", () => {
    clearTimeout(late);
    place.resume();
  });
  request.once("close", () => clearTimeout(late));
}

import type { EventEmitter } from "node:events";
import type { Slot } from "./admission.ts";

/** How long a request may take to arrive before it counts as waiting for its client. */
const graceMs = 100;

/**
 * A request whose body is late must not hold the place of one that is there. What is returned is
 * called when the body has arrived, or never will.
 */
export function countArrival(slot: Slot): () => void {
  const late = setTimeout(slot.suspend, graceMs);
  return () => {
    clearTimeout(late);
    slot.resume();
  };
}

/** The same for a request whose events tell. */
export function suspendWhileArriving(request: EventEmitter, slot: Slot): void {
  const arrived = countArrival(slot);
  request.once("end", arrived);
  request.once("close", arrived);
}

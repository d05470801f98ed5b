import type { IncomingMessage } from "node:http";
import type { Slot } from "./admission.ts";

/** How long a request's body may take to arrive before the request's slot is suspended. */
const graceMs = 100;

/**
 * Suspends a request's slot while its body is late, so that it does not take the place of a request
 * that has arrived. Call the returned function when the body has arrived, or never will.
 */
export function countArrival(slot: Slot): () => void {
  const late = setTimeout(slot.suspend, graceMs);
  return () => {
    clearTimeout(late);
    slot.resume();
  };
}

/** The same for a Node request, whose events show when its body has arrived. */
export function suspendWhileArriving(request: IncomingMessage, slot: Slot): void {
  if (request.complete) return;
  const arrived = countArrival(slot);
  request.once("end", arrived);
  request.once("close", arrived);
}

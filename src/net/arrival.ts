import { IncomingMessage } from "node:http";
import type { Slot } from "./admission.ts";
import type { Request } from "./request.ts";

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
export function suspendWhileArriving(request: Request, slot: Slot): void {
  if (request instanceof IncomingMessage && request.complete) return;
  const arrived = countArrival(slot);
  request.once("end", arrived);
  request.once("close", arrived);
}

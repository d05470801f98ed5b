import type { Call } from "./core.ts";

/** What follows the answer of a call ends at least this long before the caller's deadline. */
const minLeftMs = 100;

/**
 * How long a call may go on after its answer is known, in milliseconds: up to shortly before the
 * caller's deadline, so that the answer still arrives. Infinity without a deadline.
 */
export function timeLeftMs({ deadlineMs }: Pick<Call, "deadlineMs">): number {
  if (deadlineMs === undefined) return Number.POSITIVE_INFINITY;
  const leftMs = deadlineMs - Date.now();
  return leftMs - Math.max(leftMs / 10, minLeftMs);
}

import { StoreUnavailable } from "../redis/ask.ts";

/**
 * Whether a store that all replicas share gave no answer, and yet is not known to be away: what it was
 * to keep may be asked of it by others at once, so that a call which needs it kept does not go on.
 */
export function isSilent(error: unknown): boolean {
  return error instanceof StoreUnavailable && !error.away;
}

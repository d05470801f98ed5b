import { StoreUnavailable } from "../redis/ask.ts";

/**
 * Whether the store that replicas share is away for all of them, so that calls that move money may
 * go on without it. A store that is silent or refuses a write is not away: other replicas may use
 * it at the same time. Nor is the store of a single process away when its disk takes no writes.
 */
export function isAway(error: unknown): boolean {
  return error instanceof StoreUnavailable && error.away;
}

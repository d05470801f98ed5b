import { StoreUnavailable } from "../redis/ask.ts";

/**
 * Whether the store that replicas share is away for all of them, so that calls which move money go on
 * without it. One that is silent, or that refuses what it is to keep, is not: it may be asked by others
 * at once. Nor is the store of a single process away while its disk takes no writes.
 */
export function isAway(error: unknown): boolean {
  return error instanceof StoreUnavailable && error.away;
}

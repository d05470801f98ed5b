import { RollingCount } from "./rolling-count.ts";

/** Limits how many reads of an account are sent again, so that retries never amplify an outage. */
export interface RetryBudget {
  /** Counts a read that begins. */
  onRead(): void;
  /** Whether one more retry is allowed. */
  allows(): boolean;
  onRetry(): void;
}

/**
 * Allows retries of at most a tenth of the reads of the last ten seconds, or ten retries if that is
 * more.
 * @param now milliseconds on a clock that never goes back
 */
export function createRetryBudget(now: () => number): RetryBudget {
  const reads = new RollingCount(windowMs);
  const retries = new RollingCount(windowMs);
  return {
    onRead: () => reads.add(now()),
    allows() {
      const max = Math.max(minRetries, reads.total(now()) * retryShare);
      return retries.total(now()) + 1 <= max;
    },
    onRetry: () => retries.add(now()),
  };
}

const windowMs = 10_000;
const retryShare = 0.1;
const minRetries = 10;

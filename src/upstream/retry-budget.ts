import { RollingCount } from "./rolling-count.ts";

/** How many reads of an account may be sent again, so that retries never multiply an outage. */
export interface RetryBudget {
  /** A read begins. */
  onRead(): void;
  /** Whether one more retry fits. */
  allows(): boolean;
  onRetry(): void;
}

/**
 * Retries are a tenth of the reads of the last ten seconds at most; where reads are few, one a
 * second.
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

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
  const reads = new RollingCount(WINDOW_MS);
  const retries = new RollingCount(WINDOW_MS);
  return {
    onRead: () => reads.add(now()),
    allows() {
      const most = Math.max(FLOOR, reads.total(now()) * SHARE);
      return retries.total(now()) + 1 <= most;
    },
    onRetry: () => retries.add(now()),
  };
}

const WINDOW_MS = 10_000;
const SHARE = 0.1;
const FLOOR = 10;

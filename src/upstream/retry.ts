import { RollingCount } from "./rolling-count.ts";
import type { Verdict } from "./verdict.ts";

/** A failed read, as far as the decision on a retry depends on it. */
export interface FailedRead {
  readonly verdict: Verdict;
  /** How many retries it has had already. */
  readonly retries: number;
  /** What is left of the caller's deadline and of UPSTREAM_TIMEOUT, whichever ends first. */
  readonly leftMs: number;
  readonly breakerOpen: boolean;
  readonly withinBudget: boolean;
  /** Random, 0 to 1: the actual pause as a share of the longest. */
  readonly jitter: number;
}

/** Why a read is not retried. */
type NoRetry = "answered" | "timeout" | "ended" | "tries" | "breaker" | "deadline" | "budget";

/**
 * The pause before a retry, in milliseconds, or why there is none. A read is retried at most twice,
 * and only if the verdict is `failed`; the pause has full jitter.
 */
export function decideRetry(failed: FailedRead): number | NoRetry {
  // The service would answer the same again; after 429 the bucket waits.
  if (failed.verdict === "answered") return "answered";
  // Most of the call's time is used up, and a service that stalls needs no more calls.
  if (failed.verdict === "timeout") return "timeout";
  // The gateway or the caller ended the call.
  if (failed.verdict === "nothing") return "ended";
  if (failed.retries >= maxRetries) return "tries";
  // So many calls fail that a retry would most likely fail too.
  if (failed.breakerOpen) return "breaker";
  const pauseMs = failed.jitter * firstPauseMs * 2 ** failed.retries;
  // The present failure says more than a deadline that passes during the pause.
  if (pauseMs >= failed.leftMs) return "deadline";
  // Last, so that only a retry that would otherwise be made is reported as refused by the budget.
  if (!failed.withinBudget) return "budget";
  return pauseMs;
}

const maxRetries = 2;
const firstPauseMs = 100;

/**
 * Limits how many reads of an account are sent again, so that retries never amplify an outage. Allows
 * retries of at most a tenth of the reads of the last ten seconds, or ten retries if that is
 * more.
 * @param now milliseconds on a clock that never goes back
 */
export function createRetryBudget(now: () => number) {
  const reads = new RollingCount();
  const retries = new RollingCount();
  return {
    /** Counts a read that begins. */
    onRead: () => reads.add(now()),
    /** Whether one more retry is allowed. */
    allows() {
      const max = Math.max(minRetries, reads.total(now()) * retryShare);
      return retries.total(now()) + 1 <= max;
    },
    onRetry: () => retries.add(now()),
  };
}

const retryShare = 0.1;
const minRetries = 10;

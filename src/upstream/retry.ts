import type { Endpoint } from "./endpoint.ts";
import type { Verdict } from "./verdict.ts";

/** A call that failed, as far as the decision on another try depends on it. */
export interface FailedCall {
  readonly method: Endpoint["method"];
  readonly verdict: Verdict;
  /** How often it was tried again already. */
  readonly retries: number;
  /** What is left of the caller's deadline and of UPSTREAM_TIMEOUT, whichever ends first. */
  readonly leftMs: number;
  readonly breakerOpen: boolean;
  readonly withinBudget: boolean;
  /** The pause's share of its longest: 0 to 1, at random. */
  readonly jitter: number;
}

/** Whether to try again after a pause, or why not. */
export type RetryDecision =
  | { readonly retry: true; readonly pauseMs: number }
  | {
      readonly retry: false;
      readonly why:
        | "write"
        | "answered"
        | "timeout"
        | "ended"
        | "tries"
        | "breaker"
        | "deadline"
        | "budget";
    };

/**
 * Decides on another try. Reads alone are tried again, twice at most, and only where the service
 * failed without a word of its own; the pause has full jitter.
 */
export function decideRetry(failed: FailedCall): RetryDecision {
  // Only what changes nothing may be done twice.
  if (failed.method !== "GET") return no.write;
  // The service would answer the same again; after 429 the bucket waits.
  if (failed.verdict === "answered") return no.answered;
  // The call's whole time is spent, and a service that stalls needs no more calls.
  if (failed.verdict === "timeout") return no.timeout;
  // Our side or the caller ended it.
  if (failed.verdict === "nothing") return no.ended;
  if (failed.retries >= maxRetries) return no.tries;
  // Too many calls fail for this one to be bad luck.
  if (failed.breakerOpen) return no.breaker;
  const pauseMs = failed.jitter * firstPauseMs * 2 ** failed.retries;
  // The failure at hand tells more than a deadline that passes during the pause.
  if (pauseMs >= failed.leftMs) return no.deadline;
  // Last, so that only retries which would be made are told as refused by the budget.
  if (!failed.withinBudget) return no.budget;
  return { retry: true, pauseMs };
}

const maxRetries = 2;
const firstPauseMs = 100;

const no = {
  write: { retry: false, why: "write" },
  answered: { retry: false, why: "answered" },
  timeout: { retry: false, why: "timeout" },
  ended: { retry: false, why: "ended" },
  tries: { retry: false, why: "tries" },
  breaker: { retry: false, why: "breaker" },
  deadline: { retry: false, why: "deadline" },
  budget: { retry: false, why: "budget" },
} as const;

/** What a call is for: calls that move money may use the reserve and go before reads in the queue. */
export type Priority = "money" | "read";

/** A caller that takes turns at the bucket. */
export interface TurnTaker {
  /** Identifies the caller. */
  readonly name: string;
  /** The service that it belongs to, whose callers take turns as one. Default: it is its own. */
  readonly service?: string | undefined;
  /** Set for customers: all customers together take one turn beside each service. */
  readonly customer?: string | undefined;
}

export interface TakeOptions {
  readonly priority: Priority;
  /** Whose turn the call takes. Default: all calls without a caller count as one caller's. */
  readonly caller?: TurnTaker | undefined;
  /** Aborting it removes the call from the queue and spends no token. */
  readonly signal: AbortSignal;
  /** The caller's deadline, in milliseconds since the epoch. */
  readonly deadlineMs?: number | undefined;
}

/**
 * One call's permission to be sent. Call one of its methods, once, when the upstream has answered. The
 * token stays out for its time, whatever becomes of the call.
 */
export interface Permit {
  /** The upstream answered: its raw header texts update the budget; absent ones are undefined. */
  observe(answer: RateLimitHeaders): void;
  /** The upstream answered Too Many Requests: nothing is sent until its Reset has passed. */
  rejected(answer: RateLimitHeaders): void;
}

/** The X-RateLimit headers of one answer, as received (spec, Limits part). */
export interface RateLimitHeaders {
  readonly limit?: string | undefined;
  readonly remaining?: string | undefined;
  readonly reset?: string | undefined;
}

/** The bucket's state, for `x-ratelimit-*` on the gateway's answers and the `rateLimit` query. */
export interface RateLimitStatus {
  /** Requests a second. */
  readonly limit: number;
  /** Whole tokens left now, never below 0. */
  readonly remaining: number;
  /** Those of them that reads may take: `remaining` without the reserve. */
  readonly remainingForReads: number;
  /** Whole seconds until the bucket is full again. */
  readonly resetSeconds: number;
}

/** A share of so many tokens: whole ones, and at least 1. */
export function shareOf(tokens: number, share: number): number {
  // The small term keeps 0.29 * 100 from being 28.
  return Math.max(1, Math.floor(tokens * share + 1e-9));
}

export interface TokenBucketOptions {
  /** Requests a second to assume until the upstream's first answer. */
  readonly initialLimit: number;
  /** Share of the capacity, 0 to 1, that is only for calls that move money. */
  readonly reserve: number;
  /** Longest a call queues, in milliseconds. */
  readonly maxWaitMs: number;
}

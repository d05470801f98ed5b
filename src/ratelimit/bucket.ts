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

/** One call's permission to be sent. Call one of its methods, once, when the call has ended. */
export interface Permit {
  /** The upstream answered: its raw header texts update the budget; absent ones are undefined. */
  observe(answer: RateLimitHeaders): void;
  /** The upstream answered Too Many Requests: nothing is sent until its Reset has passed. */
  rejected(answer: RateLimitHeaders): void;
  /** The call was never sent: the token goes back. */
  release(): void;
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

/** The tokens of a full bucket that reads may take; at least 1. */
export function capacityForReads(capacity: number, reserve: number): number {
  return shareOf(capacity, 1 - reserve);
}

/** A share of so many tokens: whole ones, and at least 1. */
export function shareOf(tokens: number, share: number): number {
  // The small term keeps 0.29 * 100 from being 28.
  return Math.max(1, Math.floor(tokens * share + 1e-9));
}

/**
 * The request budget of one merchant account: a token bucket that mirrors the upstream's own (spec,
 * Limits part).
 *
 * - capacity and refill per second follow X-RateLimit-Limit, and no second has more calls than
 *   that: a token comes back a second, and a margin for jitter, after it was taken;
 * - X-RateLimit-Remaining can lower the tokens, never raise them; a header that is missing, stale,
 *   negative or not a number changes nothing;
 * - after a rejection nothing is taken until X-RateLimit-Reset has passed;
 * - a share of the capacity, the reserve, is only for calls that move money;
 * - calls queue, money first, never past their deadline or the longest wait; within money and
 *   within reads callers take turns of one token, and all customers together take one turn beside
 *   each service.
 */
export interface TokenBucket {
  /**
   * Takes one token, waiting for it if need be.
   * @throws GatewayError RESOURCE_EXHAUSTED with `retryAfterMs`, as soon as it is known that no
   * token will be free within the longest wait or before the caller's deadline; DEADLINE_EXCEEDED
   * if that deadline has passed; the error of `errorOfAbort` if the signal aborts; UNAVAILABLE once
   * closed.
   */
  take(options: TakeOptions): Promise<Permit>;
  /** The last known state, without waiting. */
  status(): RateLimitStatus;
  /**
   * Where the tokens come from: the budget that all replicas share, this replica's share while Redis
   * cannot be used, or a budget of its own without Redis.
   */
  readonly source: "own" | "shared" | "share";
  /** Fails all waiting calls with UNAVAILABLE, and stops the timer. */
  close(): void;
}

export interface TokenBucketOptions {
  /** Requests a second to assume until the upstream's first answer. */
  readonly initialLimit: number;
  /** Share of the capacity, 0 to 1, that is only for calls that move money. */
  readonly reserve: number;
  /** Longest a call queues, in milliseconds. */
  readonly maxWaitMs: number;
}

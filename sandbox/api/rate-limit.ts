export type RateLimit = ReturnType<typeof createRateLimit>;

/**
 * A strict token bucket: at most `limit` tokens, refilled evenly with `limit` tokens a second.
 * `now` is a clock in milliseconds that never goes back.
 */
export function createRateLimit(limit: number, now: () => number) {
  let tokens = limit;
  let filledAt = now();

  function refill(): void {
    const at = now();
    tokens = Math.min(limit, tokens + ((at - filledAt) * limit) / 1_000);
    filledAt = at;
  }

  return {
    /** Takes one token; false when there is none. */
    take(): boolean {
      refill();
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
    headers() {
      refill();
      return rateLimitHeaders(limit, Math.floor(tokens), Math.ceil((limit - tokens) / limit));
    },
  };
}

/**
 * The three rate-limit headers (spec, Limits part).
 * @param resetSeconds until the bucket is full again
 */
export function rateLimitHeaders(limit: number, remaining: number, resetSeconds: number) {
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(resetSeconds),
  };
}

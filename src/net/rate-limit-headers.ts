/** The rate budget of an account, as response headers report it. */
export interface Budget {
  /** Requests a second. */
  readonly limit: number;
  readonly remaining: number;
  /** Those of them that are not reserved for calls that move money. */
  readonly remainingForReads: number;
  /** Seconds until the budget is full again. */
  readonly resetSeconds: number;
}

/**
 * Response headers that report the budget: in the form of the payments service, and in that of
 * draft-ietf-httpapi-ratelimit-headers, whose `r` is what is left for this kind of call.
 */
export function rateLimitHeaders(
  { limit, remaining, remainingForReads, resetSeconds }: Budget,
  movesMoney: boolean,
): Readonly<Record<RateLimitHeader, string>> {
  const left = movesMoney ? remaining : remainingForReads;
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetSeconds),
    "ratelimit-policy": `"account";q=${limit};w=1`,
    ratelimit: `"account";r=${left};t=${resetSeconds}`,
  };
}

export const rateLimitHeaderNames = [
  "x-ratelimit-limit",
  "x-ratelimit-remaining",
  "x-ratelimit-reset",
  "ratelimit-policy",
  "ratelimit",
] as const;

type RateLimitHeader = (typeof rateLimitHeaderNames)[number];

/** The budget as answers tell it. */
export interface Budget {
  /** Requests a second. */
  readonly limit: number;
  readonly remaining: number;
  /** Until the budget is whole again, in seconds. */
  readonly resetSeconds: number;
}

/**
 * The headers of an answer that tell the budget: those of the payments service, and the same as
 * draft-ietf-httpapi-ratelimit-headers has it.
 */
export function rateLimitHeaders({
  limit,
  remaining,
  resetSeconds,
}: Budget): Readonly<Record<RateLimitHeader, string>> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetSeconds),
    "ratelimit-policy": `"account";q=${limit};w=1`,
    ratelimit: `"account";r=${remaining};t=${resetSeconds}`,
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

import type { RateLimitHeaders, RateLimitStatus } from "./bucket.ts";

/** The validated headers of one answer; an invalid value is undefined. */
export type RateLimitReading = Partial<ReturnType<typeof readRateLimitHeaders>>;

/**
 * Reads the X-RateLimit headers (spec, Limits part: three integers). A value that is missing,
 * negative, not an integer's plain text or out of range is left out, for the caller to ignore.
 */
export function readRateLimitHeaders(answer: RateLimitHeaders) {
  return {
    /** Requests a second. */
    limit: integer(answer.limit, 1, 1_000_000),
    /** Requests left. */
    remaining: integer(answer.remaining, 0, 1_000_000),
    // Seconds until full regeneration. More than an hour is another unit, such as an epoch.
    resetSeconds: integer(answer.reset, 1, 3_600),
  };
}

function integer(text: string | undefined, min: number, max: number): number | undefined {
  if (text === undefined || !/^\d{1,15}$/.test(text)) return undefined;
  const value = Number(text);
  return value >= min && value <= max ? value : undefined;
}

/**
 * Response headers that report the budget: in the form of the payments service, and in that of
 * draft-ietf-httpapi-ratelimit-headers, whose `r` is what is left for this kind of call.
 */
export function rateLimitHeaders(
  { limit, remaining, remainingForReads, resetSeconds }: RateLimitStatus,
  movesMoney: boolean,
) {
  const left = movesMoney ? remaining : remainingForReads;
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetSeconds),
    "ratelimit-policy": `"account";q=${limit};w=1`,
    ratelimit: `"account";r=${left};t=${resetSeconds}`,
  };
}

export const rateLimitHeaderNames: readonly string[] = Object.keys(
  rateLimitHeaders({ limit: 0, remaining: 0, remainingForReads: 0, resetSeconds: 0 }, false),
);

import type { RateLimitHeaders } from "../../src/ratelimit/bucket.ts";

/** An upstream that counts requests in one of the ways the spec's Limits part may mean. */
export interface ModelledUpstream {
  limit: number;
  /** Counts one request that arrives at this time, in milliseconds; times must not decrease. */
  request(now: number): { readonly accepted: boolean; readonly headers: RateLimitHeaders };
}

/** A bucket of `limit` tokens that regains `limit` a second. */
export function tokenBucketUpstream(limit: number): ModelledUpstream {
  let tokens = limit;
  let at = 0;
  return {
    limit,
    request(now) {
      tokens = Math.min(this.limit, tokens + ((now - at) / 1_000) * this.limit);
      at = now;
      const accepted = tokens >= 1;
      if (accepted) tokens--;
      return answer(accepted, this.limit, tokens, (this.limit - tokens) / this.limit);
    },
  };
}

/** `limit` requests in each whole second of the upstream's clock. */
export function fixedWindowUpstream(limit: number): ModelledUpstream {
  let window = 0;
  let count = 0;
  return {
    limit,
    request(now) {
      const current = Math.floor(now / 1_000);
      if (current !== window) count = 0;
      window = current;
      const accepted = count < this.limit;
      if (accepted) count++;
      return answer(accepted, this.limit, this.limit - count, current + 1 - now / 1_000);
    },
  };
}

/** `limit` requests in any second, whenever it begins. */
export function slidingWindowUpstream(limit: number): ModelledUpstream {
  let times: number[] = [];
  return {
    limit,
    request(now) {
      times = times.filter((time) => time > now - 1_000);
      const accepted = times.length < this.limit;
      if (accepted) times.push(now);
      return answer(accepted, this.limit, this.limit - times.length, 1);
    },
  };
}

function answer(accepted: boolean, limit: number, remaining: number, resetSeconds: number) {
  return {
    accepted,
    headers: {
      limit: String(limit),
      remaining: String(Math.max(0, Math.floor(remaining))),
      reset: String(Math.max(1, Math.ceil(resetSeconds))),
    },
  };
}

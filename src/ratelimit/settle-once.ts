import type { Permit, RateLimitHeaders } from "./bucket.ts";

/** A permit that counts only the first thing that it is told; `onSettled` comes after that. */
export function settleOnce(permit: Permit, onSettled: () => void): Permit {
  let settled = false;
  const once = (settle: () => void) => {
    if (settled) return;
    settled = true;
    settle();
    onSettled();
  };
  return {
    observe: (answer: RateLimitHeaders) => once(() => permit.observe(answer)),
    rejected: (answer: RateLimitHeaders) => once(() => permit.rejected(answer)),
    release: () => once(() => permit.release()),
  };
}

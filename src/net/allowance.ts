/** How often something may happen: `burst` times at once, and `perSecond` in the long run. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Returns a function that takes one from the allowance; it returns false when nothing is left. */
export function createAllowance(rate: Rate): () => boolean {
  let left = rate.burst;
  let at = performance.now();
  return () => {
    const time = performance.now();
    const { burst, perSecond } = rate;
    left = Math.min(burst, left + ((time - at) * perSecond) / 1000) - 1;
    at = time;
    if (left >= 0) return true;
    left = 0;
    return false;
  };
}

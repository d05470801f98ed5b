/**
 * Remembers which addresses connections were cut of that flooded us, and has further ones of theirs
 * wait before they are served. Whoever is cut could come again at once, and what a connection costs
 * until it is cut would be all that the process does. One cut costs the next connection next to
 * nothing, and none waits longer than a second: others may be behind the same address.
 */
export interface Penalties {
  /** A connection of this address was cut. */
  add(address: string): void;
  /** How long its next connection is to wait, in milliseconds. */
  delayMs(address: string): number;
}

/** What a cut adds, the time in which two thirds of it are forgotten, and the most there is. */
const delayPerCutMs = 25;
const forgottenAfterMs = 10_000;
const maxDelayMs = 1_000;
/** Addresses that are remembered: beyond it, those that were not heard of for longest go. */
const maxAddresses = 10_000;

export function createPenalties(
  now: () => number = () => performance.now(),
  random: () => number = Math.random,
): Penalties {
  const scores = new Map<string, { cuts: number; atMs: number }>();

  function cutsOf(address: string): number {
    const score = scores.get(address);
    return score ? score.cuts * Math.exp((score.atMs - now()) / forgottenAfterMs) : 0;
  }

  return {
    add(address) {
      const cuts = cutsOf(address) + 1;
      scores.delete(address);
      scores.set(address, { cuts, atMs: now() });
      if (scores.size <= maxAddresses) return;
      const [oldest = ""] = scores.keys();
      scores.delete(oldest);
    },
    delayMs(address) {
      const delayMs = Math.min(cutsOf(address) * delayPerCutMs, maxDelayMs);
      // Those that were cut together are not to come together.
      return Math.floor(delayMs * (0.5 + random() / 2));
    },
  };
}

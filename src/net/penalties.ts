/**
 * Remembers the addresses of cut connections and delays further connections from them. Without a
 * delay, a client could reconnect after each cut, and the process would do nothing but serve
 * connections until it cuts them. One cut hardly delays the next connection, and no connection
 * waits longer than a second, since other clients may share the address.
 */
export type Penalties = ReturnType<typeof createPenalties>;

/** Delay that a cut adds, time in which it decays by two thirds, and the longest delay. */
const delayPerCutMs = 25;
const forgottenAfterMs = 10_000;
const maxDelayMs = 1_000;
/** Most addresses that are remembered; beyond it, the one with the oldest cut is forgotten. */
const maxAddresses = 10_000;

export function createPenalties(
  now: () => number = () => performance.now(),
  random: () => number = Math.random,
) {
  const scores = new Map<string, { cuts: number; atMs: number }>();

  function cutsOf(address: string): number {
    const score = scores.get(address);
    return score ? score.cuts * Math.exp((score.atMs - now()) / forgottenAfterMs) : 0;
  }

  return {
    /** Records that a connection from this address was cut. */
    add(address: string): void {
      const cuts = cutsOf(address) + 1;
      scores.delete(address);
      scores.set(address, { cuts, atMs: now() });
      if (scores.size <= maxAddresses) return;
      const [oldest = ""] = scores.keys();
      scores.delete(oldest);
    },
    /** How long the next connection from this address must wait, in milliseconds. */
    delayMs(address: string): number {
      const delayMs = Math.min(cutsOf(address) * delayPerCutMs, maxDelayMs);
      // Jitter keeps connections that were cut together from being served together.
      return Math.floor(delayMs * (0.5 + random() / 2));
    },
  };
}

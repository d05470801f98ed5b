/** Runs `run` once after `ms`, clamped to 0 to 2^31 - 1. @returns a function that cancels it */
export function startTimer(ms: number, run: () => void): () => void {
  const timer = setTimeout(run, Math.min(Math.max(ms, 0), maxTimerMs));
  return () => clearTimeout(timer);
}

/** Longest delay of a Node timer, in milliseconds: a timer with a longer one fires at once. */
export const maxTimerMs = 2 ** 31 - 1;

/**
 * Looks again and again until it is closed. `found` hears of each result, and returns the pause before
 * the next look, in milliseconds.
 * @param look must not reject
 */
export function repeat<Found>(
  look: () => Promise<Found>,
  found: (result: Found) => number,
  firstMs = 0,
): { close(): void } {
  let closed = false;
  let timer = setTimeout(run, firstMs).unref();
  async function run(): Promise<void> {
    const result = await look();
    if (!closed) timer = setTimeout(run, found(result)).unref();
  }
  return {
    close() {
      closed = true;
      clearTimeout(timer);
    },
  };
}

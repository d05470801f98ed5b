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

/** Upper bounds of the classes, in milliseconds; longer durations have a class of their own. */
const bounds = [
  2, 5, 10, 15, 20, 30, 40, 50, 75, 100, 150, 200, 300, 400, 500, 750, 1_000, 1_500, 2_000, 3_000,
  5_000, 7_500, 10_000, 15_000, 20_000, 30_000, 60_000,
];

/** Durations counted in classes: constant in size. Quantiles are exact to the width of a class. */
export class Durations {
  readonly #counts = new Uint32Array(bounds.length + 1);
  #total = 0;

  add(ms: number): void {
    let slot = 0;
    while (slot < bounds.length && ms > (bounds[slot] as number)) slot += 1;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + 1;
    this.#total += 1;
  }

  addAll(other: Durations): void {
    for (const [slot, count] of other.#counts.entries()) {
      this.#counts[slot] = (this.#counts[slot] ?? 0) + count;
    }
    this.#total += other.#total;
  }

  /** What `share` (0 to 1) of the durations did not exceed, in whole ms; undefined without any. */
  quantile(share: number): number | undefined {
    if (this.#total === 0) return undefined;
    const wanted = share * this.#total;
    let before = 0;
    for (const [slot, count] of this.#counts.entries()) {
      if (count > 0 && before + count >= wanted) {
        const from = bounds[slot - 1] ?? 0;
        const to = bounds[slot] ?? from;
        return Math.round(from + ((to - from) * (wanted - before)) / count);
      }
      before += count;
    }
    return bounds.at(-1);
  }
}

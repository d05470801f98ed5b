/** Counts the events of the last ten seconds. The window moves in steps of a second. */
export class RollingCount {
  readonly #slots: number[] = Array(slots).fill(0);
  #newest = 0;
  #total = 0;

  /** Counts one at the time `now`, in milliseconds on a clock that never goes back. */
  add(now: number): void {
    this.#moveOn(now);
    const at = this.#newest % slots;
    this.#slots[at] = (this.#slots[at] ?? 0) + 1;
    this.#total++;
  }

  total(now: number): number {
    this.#moveOn(now);
    return this.#total;
  }

  #moveOn(now: number): void {
    const slot = Math.floor(now / slotMs);
    if (slot <= this.#newest) return;
    for (let passed = Math.max(this.#newest + 1, slot - slots + 1); passed <= slot; passed++) {
      const at = passed % slots;
      this.#total -= this.#slots[at] ?? 0;
      this.#slots[at] = 0;
    }
    this.#newest = slot;
  }
}

const slots = 10;
const slotMs = 1_000;

/** The times of the latest takes, oldest first. */
export class TakeLog {
  #times: number[] = [];
  /** Index of the oldest take that is not forgotten. */
  #oldest = 0;

  get size(): number {
    return this.#times.length - this.#oldest;
  }

  /** The time of the nth latest take, 1 being the last; -Infinity if there are fewer than n. */
  latest(n: number): number {
    return n >= 1 && n <= this.size ? this.#times.at(-n)! : -Infinity;
  }

  /** Adds a take. Times must not decrease. */
  push(time: number): void {
    this.#times.push(time);
  }

  /** Forgets one take of exactly this time, if it is still there. */
  remove(time: number): void {
    const at = this.#times.lastIndexOf(time);
    if (at >= this.#oldest) this.#times.splice(at, 1);
  }

  /** Forgets the takes up to and including this time. */
  dropUntil(time: number): void {
    while (this.size > 0 && this.#times[this.#oldest]! <= time) this.#oldest++;
    // Remove in bulk: otherwise each take would move all others.
    if (this.#oldest < 64 || this.#oldest < this.size) return;
    this.#times.splice(0, this.#oldest);
    this.#oldest = 0;
  }

  /** Forgets the `count` oldest takes. */
  dropFirst(count: number): void {
    this.#times.splice(0, this.#oldest + count);
    this.#oldest = 0;
  }

  /** `[milliseconds ago, takes]` by cells of this length, oldest first, each as of its cell's end. */
  ago(now: number, cellMs: number): [number, number][] {
    const cells: [number, number][] = [];
    let cellAt = -Infinity;
    for (let nth = this.#oldest; nth < this.#times.length; nth++) {
      const at = this.#times[nth]!;
      if (at - cellAt >= cellMs) {
        cellAt = at;
        cells.push([Math.max(0, Math.floor(now - at - cellMs)), 0]);
      }
      cells.at(-1)![1]++;
    }
    return cells;
  }
}

/** The times of the latest takes, oldest first. */
export class TakeLog {
  #times: number[] = [];
  /** Those before are forgotten. */
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
    // In bulk, or each take would move all others.
    if (this.#oldest < 64 || this.#oldest < this.size) return;
    this.#times.splice(0, this.#oldest);
    this.#oldest = 0;
  }
}

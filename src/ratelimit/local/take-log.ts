/** The times of the latest takes, oldest first, in a ring that grows with the capacity. */
export class TakeLog {
  #times = new Float64Array(64);
  #oldest = 0;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The time of the nth latest take, 1 being the last; -Infinity if there are fewer than n. */
  latest(n: number): number {
    return n >= 1 && n <= this.#size ? this.#times[this.#slot(this.#size - n)]! : -Infinity;
  }

  /** Adds a take. Times must not decrease. */
  push(time: number): void {
    if (this.#size === this.#times.length) this.#grow();
    this.#times[this.#slot(this.#size++)] = time;
  }

  /** Forgets one take of exactly this time, if it is still there; costs one move per later take. */
  remove(time: number): void {
    let at = this.#size - 1;
    while (at >= 0 && this.#times[this.#slot(at)]! > time) at--;
    if (at < 0 || this.#times[this.#slot(at)] !== time) return;
    for (; at < this.#size - 1; at++) {
      this.#times[this.#slot(at)] = this.#times[this.#slot(at + 1)]!;
    }
    this.#size--;
  }

  /** Forgets the takes up to and including this time. */
  dropUntil(time: number): void {
    while (this.#size > 0 && this.#times[this.#oldest]! <= time) {
      this.#oldest = this.#slot(1);
      this.#size--;
    }
  }

  #slot(index: number): number {
    return (this.#oldest + index) & (this.#times.length - 1);
  }

  #grow(): void {
    const grown = new Float64Array(this.#times.length * 2);
    for (let at = 0; at < this.#size; at++) grown[at] = this.#times[this.#slot(at)]!;
    this.#times = grown;
    this.#oldest = 0;
  }
}

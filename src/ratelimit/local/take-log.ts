import { Deque } from "../../collections/deque.ts";

/** The times of the latest takes, oldest first. */
export class TakeLog {
  readonly #times = new Deque<number>();

  get size(): number {
    return this.#times.length;
  }

  /** The time of the nth latest take, 1 being the last; -Infinity if there are fewer than n. */
  latest(n: number): number {
    return this.#times.at(this.size - n) ?? -Infinity;
  }

  /** Adds a take. Times must not decrease. */
  push(time: number): void {
    this.#times.push(time);
  }

  /** Forgets one take of exactly this time, if it is still there. */
  remove(time: number): void {
    this.#times.removeLast(time);
  }

  /** Forgets the takes up to and including this time. */
  dropUntil(time: number): void {
    while ((this.#times.at(0) ?? Infinity) <= time) this.#times.shift();
  }

  /** `[milliseconds ago, takes]` by cells of this length, oldest first, each as of its cell's end. */
  ago(now: number, cellMs: number): [number, number][] {
    const cells: [number, number][] = [];
    let cellAt = -Infinity;
    for (const at of this.#times.slice(0, this.size)) {
      if (at - cellAt >= cellMs) {
        cellAt = at;
        cells.push([Math.max(0, Math.floor(now - at - cellMs)), 0]);
      }
      cells.at(-1)![1]++;
    }
    return cells;
  }
}

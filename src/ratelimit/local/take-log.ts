import { Deque } from "../../collections/deque.ts";

/** The times of the latest takes, oldest first. They must not decrease. */
export class TakeLog extends Deque<number> {
  /** The time of the nth latest take, 1 being the last; -Infinity if there are fewer than n. */
  latest(n: number): number {
    return this.at(this.length - n) ?? -Infinity;
  }

  /** Forgets the takes up to and including this time. */
  dropUntil(time: number): void {
    while ((this.at(0) ?? Infinity) <= time) this.shift();
  }

  /** `[milliseconds ago, takes]` by cells of this length, oldest first, each as of its cell's end. */
  ago(now: number, cellMs: number): [number, number][] {
    const cells: [number, number][] = [];
    let cellAt = -Infinity;
    for (const at of this.slice(0, this.length)) {
      if (at - cellAt >= cellMs) {
        cellAt = at;
        cells.push([Math.max(0, Math.floor(now - at - cellMs)), 0]);
      }
      cells.at(-1)![1]++;
    }
    return cells;
  }
}

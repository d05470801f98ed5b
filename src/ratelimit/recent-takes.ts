/** Tokens used, by how long ago: `[[milliseconds ago, tokens], ...]`, the oldest first. */
export type TakesAgo = [number, number][];

/** The tokens used of late, in cells of a few milliseconds. */
export class RecentTakes {
  readonly #keepMs: number;
  #cells: { readonly at: number; count: number }[] = [];

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  get latestAt(): number {
    return this.#cells.at(-1)?.at ?? -Infinity;
  }

  /** Times must not decrease. */
  add(tokens: number, now: number): void {
    const last = this.#cells.at(-1);
    if (last && now - last.at < CELL_MS) last.count += tokens;
    else this.#cells.push({ at: now, count: tokens });
    if (now - this.#cells[0]!.at > 2 * this.#keepMs) this.#forget(now);
  }

  ago(now: number): TakesAgo {
    this.#forget(now);
    // As of the cell's end: rather late than early.
    return this.#cells.map(({ at, count }) => [Math.max(0, Math.floor(now - at - CELL_MS)), count]);
  }

  clear(): void {
    this.#cells = [];
  }

  #forget(now: number): void {
    const kept = this.#cells.findIndex(({ at }) => now - at <= this.#keepMs);
    this.#cells.splice(0, kept < 0 ? this.#cells.length : kept);
  }
}

const CELL_MS = 5;

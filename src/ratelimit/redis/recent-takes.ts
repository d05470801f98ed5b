/** Tokens used, by how long ago: `[[milliseconds ago, tokens], ...]`, the oldest first. */
export type TakesAgo = [number, number][];

/** The tokens used of late, in cells of a few milliseconds. Times are on the monotonic clock. */
export class RecentTakes {
  readonly #keepMs: number;
  #cells: { readonly at: number; count: number }[] = [];
  /** So many of the cells were told; they grow no more. */
  #told = 0;

  constructor(keepMs: number) {
    this.#keepMs = keepMs;
  }

  get latestAt(): number {
    return this.#cells.at(-1)?.at ?? -Infinity;
  }

  /** Times must not decrease. */
  add(tokens: number, now: number): void {
    const last = this.#cells.at(-1);
    const grows = last && this.#cells.length > this.#told && now - last.at < cellMs;
    if (grows) last.count += tokens;
    else this.#cells.push({ at: now, count: tokens });
    if (this.#cells.length > 2 * (this.#keepMs / cellMs)) this.#forget(now);
  }

  /** All that are kept. Each as of its cell's end, rather late than early. */
  tell(now: number): TakesAgo {
    this.#forget(now);
    this.#told = this.#cells.length;
    return this.#cells.map(({ at, count }) => [Math.max(0, Math.floor(now - at - cellMs)), count]);
  }

  /** What was told last was heard, and need not be told again. */
  clearTold(): void {
    this.#cells.splice(0, this.#told);
    this.#told = 0;
  }

  #forget(now: number): void {
    const kept = this.#cells.findIndex(({ at }) => now - at <= this.#keepMs);
    const gone = kept < 0 ? this.#cells.length : kept;
    this.#cells.splice(0, gone);
    this.#told = Math.max(0, this.#told - gone);
  }
}

/** Also the length of the cells in take-tokens.lua. */
export const cellMs = 5;

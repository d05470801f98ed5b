/**
 * A set of keys, each remembered for a fixed time after it was added, and at most `limit` of them.
 * Adding a known key again does not prolong its time.
 */
export class Seen {
  /** Oldest first. All keys last equally long, so this is also the order in which they expire. */
  readonly #addedAt = new Map<string, number>();
  readonly #lastsMs: number;
  readonly #limit: number;

  constructor(options: { readonly lastsMs: number; readonly limit: number }) {
    this.#lastsMs = options.lastsMs;
    this.#limit = options.limit;
  }

  has(key: string): boolean {
    return this.#addedAt.has(key);
  }

  add(key: string, nowMs: number): void {
    if (this.#addedAt.has(key)) return;
    this.#addedAt.set(key, nowMs);
    if (this.#addedAt.size > this.#limit) this.#forgetOldest();
  }

  /** Removes keys whose time is over. */
  sweep(nowMs: number): void {
    for (const addedAt of this.#addedAt.values()) {
      if (addedAt >= nowMs - this.#lastsMs) return;
      this.#forgetOldest();
    }
  }

  #forgetOldest(): void {
    for (const key of this.#addedAt.keys()) {
      this.#addedAt.delete(key);
      return;
    }
  }
}

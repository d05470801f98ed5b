/**
 * What was seen, for a while: remembered for a fixed time after it was added, and at most `limit`
 * of it. Adding what is known does not prolong it.
 */
export class Seen {
  /** In the order of their time, since all last equally long. */
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

  /** Forgets what was added longer ago than it lasts. */
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

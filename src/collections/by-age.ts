/**
 * A map that knows which of its entries was set longest ago. A `Map` alone knows it, too, but pays
 * for it: behind its deleted first entries, each iteration passes over the places of all of them.
 */
export class ByAge<T> {
  readonly #entries = new Map<string, Entry<T>>();
  #oldest: Entry<T> | undefined;
  #newest: Entry<T> | undefined;

  get size(): number {
    return this.#entries.size;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.value;
  }

  /** The entry becomes the newest. */
  set(key: string, value: T): void {
    let entry = this.#entries.get(key);
    if (entry) {
      entry.value = value;
      if (entry === this.#newest) return;
      this.#unlink(entry);
    } else {
      entry = { key, value, older: undefined, newer: undefined };
      this.#entries.set(key, entry);
    }
    entry.older = this.#newest;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
  }

  /** Whether there was such an entry. */
  delete(key: string): boolean {
    const entry = this.#entries.get(key);
    if (!entry) return false;
    this.#unlink(entry);
    // An old table of the map may refer to the entry for long (see UnderWay).
    entry.value = undefined;
    return this.#entries.delete(key);
  }

  /** Looks at the entries, the oldest first, while `look` returns true. It may delete the entry. */
  fromOldest(look: (key: string, value: T) => boolean): void {
    for (let entry = this.#oldest; entry; ) {
      const { newer } = entry;
      if (!look(entry.key, entry.value as T)) return;
      entry = newer;
    }
  }

  #unlink(entry: Entry<T>): void {
    if (entry.older) entry.older.newer = entry.newer;
    else this.#oldest = entry.newer;
    if (entry.newer) entry.newer.older = entry.older;
    else this.#newest = entry.older;
    entry.older = undefined;
    entry.newer = undefined;
  }
}

interface Entry<T> {
  readonly key: string;
  /** Undefined once it was deleted. */
  value: T | undefined;
  older: Entry<T> | undefined;
  newer: Entry<T> | undefined;
}

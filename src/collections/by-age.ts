/**
 * A map for short-lived entries that knows which of them was set longest ago. A `Map` alone pays for
 * both: behind its deleted first entries, each iteration passes over the places of all of them, and
 * its old tables keep what was deleted (see UnderWay). Here they keep no more than a name.
 */
export class ByAge<T, Name = string> {
  readonly #entries = new Map<Name, Entry<T, Name>>();
  #oldest: Entry<T, Name> | undefined;
  #newest: Entry<T, Name> | undefined;

  get size(): number {
    return this.#entries.size;
  }

  /** The key of the entry that was set longest ago. */
  get oldest(): Name | undefined {
    return this.#oldest?.key;
  }

  get(key: Name): T | undefined {
    return this.#entries.get(key)?.value;
  }

  /** The entry becomes the newest. @returns its value before */
  set(key: Name, value: T): T | undefined {
    let entry = this.#entries.get(key);
    const before = entry?.value;
    if (entry) {
      entry.value = value;
      if (entry === this.#newest) return before;
      this.#unlink(entry);
    } else {
      entry = { key, value, older: undefined, newer: undefined };
      this.#entries.set(key, entry);
    }
    entry.older = this.#newest;
    if (this.#newest) this.#newest.newer = entry;
    else this.#oldest = entry;
    this.#newest = entry;
    return before;
  }

  /** Whether there was such an entry. */
  delete(key: Name): boolean {
    const entry = this.#entries.get(key);
    if (!entry) return false;
    this.#unlink(entry);
    entry.value = undefined;
    return this.#entries.delete(key);
  }

  /** Looks at the entries, the oldest first, while `look` returns true. It may delete the entry. */
  fromOldest(look: (key: Name, value: T) => boolean): void {
    for (let entry = this.#oldest; entry; ) {
      const { newer } = entry;
      if (!look(entry.key, entry.value as T)) return;
      entry = newer;
    }
  }

  #unlink(entry: Entry<T, Name>): void {
    if (entry.older) entry.older.newer = entry.newer;
    else this.#oldest = entry.newer;
    if (entry.newer) entry.newer.older = entry.older;
    else this.#newest = entry.older;
    entry.older = undefined;
    entry.newer = undefined;
  }
}

interface Entry<T, Name> {
  readonly key: Name;
  /** Undefined once it was deleted. */
  value: T | undefined;
  older: Entry<T, Name> | undefined;
  newer: Entry<T, Name> | undefined;
}

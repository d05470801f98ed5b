/**
 * A collection of short-lived members, such as calls in progress. A `Set` is expensive for the
 * garbage collector: V8 replaces its table as members are added and removed, and each table refers
 * to the next. Once one table is in the old generation, all later tables and their members survive
 * every minor collection, and only a full one frees them. An array has no such chain of tables.
 */
export class UnderWay<T> implements Iterable<T> {
  readonly #members: Member<T>[] = [];

  get size(): number {
    return this.#members.length;
  }

  add(value: T): Member<T> {
    const member = new Member(value, this.#members);
    this.#members.push(member);
    return member;
  }

  /** For frequent use: makes no copy. `look` must not add or remove members. */
  forEach(look: (value: T) => void): void {
    for (const { value } of this.#members) look(value);
  }

  /** Skips members that leave or are added during the iteration. */
  *[Symbol.iterator](): Generator<T> {
    for (const member of [...this.#members]) if (!member.hasLeft) yield member.value;
  }
}

/** A value in an `UnderWay`, until it leaves. */
export class Member<T> {
  readonly value: T;
  readonly #all: Member<T>[];
  /** Index among all members; negative once it has left. */
  #at: number;

  constructor(value: T, all: Member<T>[]) {
    this.value = value;
    this.#all = all;
    this.#at = all.length;
  }

  get hasLeft(): boolean {
    return this.#at < 0;
  }

  /** Further calls have no effect. */
  leave(): void {
    if (this.#at < 0) return;
    const last = this.#all.pop();
    if (last && last !== this) {
      last.#at = this.#at;
      this.#all[this.#at] = last;
    }
    this.#at = -1;
  }
}

/**
 * What is under way, each for as long as a call lasts. A `Set` says the same and costs the garbage
 * collector dear: V8 makes its table anew as members come and go, and each table leads to the next.
 * Once one of them has grown old, all that follow it, with what they hold, outlive every collection
 * of young objects, and only a full one frees them. An array is one table throughout.
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

  /** For what is done often: nobody may come or leave meanwhile. */
  forEach(look: (value: T) => void): void {
    for (const { value } of this.#members) look(value);
  }

  /** Whoever leaves in between is left out, whoever comes in between too. */
  *[Symbol.iterator](): Generator<T> {
    for (const member of [...this.#members]) if (!member.hasLeft) yield member.value;
  }
}

/** One of those under way. */
export class Member<T> {
  readonly value: T;
  readonly #all: Member<T>[];
  /** Its place among all; negative once it has left. */
  #at: number;

  constructor(value: T, all: Member<T>[]) {
    this.value = value;
    this.#all = all;
    this.#at = all.length;
  }

  get hasLeft(): boolean {
    return this.#at < 0;
  }

  /** Once is enough. */
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

/**
 * The same by their names. The names need a `Map`, which is why what it holds is let go of when it is
 * taken away: old tables keep no more than a name.
 */
export class UnderWayByName<T> {
  readonly #members = new Map<string, { value: T | undefined }>();

  get size(): number {
    return this.#members.size;
  }

  get(name: string): T | undefined {
    return this.#members.get(name)?.value;
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  set(name: string, value: T): void {
    const member = this.#members.get(name);
    if (member) member.value = value;
    else this.#members.set(name, { value });
  }

  delete(name: string): void {
    const member = this.#members.get(name);
    if (!member) return;
    member.value = undefined;
    this.#members.delete(name);
  }

  /** Who came first. */
  get oldest(): string | undefined {
    return this.#members.keys().next().value;
  }

  /** In the order in which they came. */
  *values(): Generator<T> {
    for (const { value } of this.#members.values()) if (value !== undefined) yield value;
  }
}

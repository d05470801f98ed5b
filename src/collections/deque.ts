/** A list that grows at its end and shrinks at its front, both in constant time. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    // An engine's array makes room for 17 at its first push, or spread, and most lists have few.
    if (this.#items.length < few) this.#items = this.#items.concat([item]);
    else this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    // Moving what is left once it is the smaller half costs each item one move at most.
    if (this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return item;
  }

  at(index: number): T | undefined {
    return index < 0 ? undefined : this.#items[this.#head + index];
  }

  slice(start: number, end: number): T[] {
    const from = this.#head + Math.max(start, 0);
    return this.#items.slice(from, Math.max(this.#head + end, from)) as T[];
  }

  clear(): void {
    this.#items = [];
    this.#head = 0;
  }

  /** Index of the first item that the test holds for, where it holds for all behind that one. */
  findFirst(test: (item: T) => boolean): number {
    let low = 0;
    let high = this.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (test(this.at(middle) as T)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

const few = 4;

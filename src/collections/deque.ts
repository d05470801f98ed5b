/** A list that grows at its end and shrinks at its front, both in constant time. */
export class Deque<T> {
  #items: (T | undefined)[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    // V8 reserves room for 17 items at an array's first push or spread; most lists have few items.
    if (this.#items.length < few) this.#items = this.#items.concat([item]);
    else this.#items.push(item);
  }

  shift(): T | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head];
    this.#items[this.#head++] = undefined;
    // Compacting once half of the array is empty moves at most one item per shift on average.
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

  /** Index of the first item that passes, else the length. All items behind it must pass too. */
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

/** One place in a line; leave through `WaitingLine.remove`. */
export interface Place<T> {
  readonly value: T;
  previous: Place<T> | undefined;
  next: Place<T> | undefined;
  waiting: boolean;
}

/** First come, first served; joining, leaving from anywhere and looking at the head are O(1). */
export class WaitingLine<T> implements Iterable<T> {
  #head: Place<T> | undefined;
  #tail: Place<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#head?.value;
  }

  join(value: T): Place<T> {
    const place: Place<T> = { value, previous: this.#tail, next: undefined, waiting: true };
    if (this.#tail) this.#tail.next = place;
    else this.#head = place;
    this.#tail = place;
    this.#size++;
    return place;
  }

  /** False if it had left already. */
  remove(place: Place<T>): boolean {
    if (!place.waiting) return false;
    place.waiting = false;
    if (place.previous) place.previous.next = place.next;
    else this.#head = place.next;
    if (place.next) place.next.previous = place.previous;
    else this.#tail = place.previous;
    this.#size--;
    return true;
  }

  /** In order; the value just yielded may be removed while iterating. */
  *[Symbol.iterator](): Iterator<T> {
    let place = this.#head;
    while (place) {
      const { next } = place;
      yield place.value;
      place = next;
    }
  }
}

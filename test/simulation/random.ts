/** Random numbers, the same ones for the same seed and stream. */
export class Random {
  #state: number;

  constructor(seed: number, stream = "") {
    this.#state = (seed ^ hashOf(stream)) >>> 0;
  }

  /** 0 to 1, by mulberry32. */
  readonly next = (): number => {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };

  between(least: number, most: number): number {
    return least + this.next() * (most - least);
  }

  /** A whole number, `most` included. */
  whole(least: number, most: number): number {
    return Math.floor(this.between(least, most + 1));
  }

  chance(share: number): boolean {
    return this.next() < share;
  }

  pick<T>(all: readonly T[]): T {
    return all[Math.floor(this.next() * all.length)] as T;
  }

  hex(digits: number): string {
    let text = "";
    while (text.length < digits) text += Math.floor(this.next() * 16).toString(16);
    return text;
  }
}

function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  return text === "" ? 0 : hash;
}

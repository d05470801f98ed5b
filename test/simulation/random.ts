import { seeded } from "../random.ts";

/** Random numbers, the same ones for the same seed and stream. */
export class Random {
  /** 0 to 1. */
  readonly next: () => number;

  constructor(seed: number, stream = "") {
    this.next = seeded(seed ^ hashOf(stream));
  }

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

/** Memory of a body in several pieces, from the second one on. */
const minBytes = 4_096;
const nothing = Buffer.alloc(0);

/**
 * Collects pieces in one buffer. Kept apart, each piece of one byte would take some four hundred.
 */
export class GrowingBuffer {
  #memory: Buffer = nothing;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The memory that it takes with one more piece, in bytes. */
  roomWith(piece: Buffer): number {
    const end = this.#size + piece.length;
    if (this.#size === 0) return isOwn(piece) ? piece.buffer.byteLength : piece.length;
    const { length } = this.#memory;
    return end <= length ? length : Math.max(end, 2 * length, minBytes);
  }

  append(piece: Buffer): void {
    const end = this.#size + piece.length;
    if (this.#size === 0) {
      // A body in one piece, as nearly all are, is copied only out of a much larger buffer.
      this.#memory = isOwn(piece) ? piece : Buffer.from(piece);
    } else {
      if (end > this.#memory.length) {
        const grown = Buffer.allocUnsafeSlow(this.roomWith(piece));
        this.#memory.copy(grown, 0, 0, this.#size);
        this.#memory = grown;
      }
      piece.copy(this.#memory, this.#size);
    }
    this.#size = end;
  }

  /** Returns what it holds, and is empty then. */
  take(): Buffer {
    const taken = this.#memory.subarray(0, this.#size);
    this.clear();
    return taken;
  }

  clear(): void {
    this.#memory = nothing;
    this.#size = 0;
  }
}

/** Whether a piece takes about as much memory as it has bytes, or little in any case. */
function isOwn(piece: Buffer): boolean {
  return piece.buffer.byteLength <= Math.max(minBytes, 2 * piece.length);
}

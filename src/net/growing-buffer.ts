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

  /** @returns the memory that it takes with the piece, in bytes */
  append(piece: Buffer): number {
    const before = this.#size;
    this.#size += piece.length;
    if (before === 0) {
      // A body in one piece, as nearly all are, is copied only out of a much larger buffer.
      const { byteLength } = piece.buffer;
      const isOwn = byteLength <= Math.max(minBytes, 2 * piece.length);
      this.#memory = isOwn ? piece : Buffer.from(piece);
      return isOwn ? byteLength : piece.length;
    }
    if (this.#size > this.#memory.length) {
      const bytes = Math.max(this.#size, 2 * this.#memory.length, minBytes);
      const grown = Buffer.allocUnsafeSlow(bytes);
      this.#memory.copy(grown, 0, 0, before);
      this.#memory = grown;
    }
    piece.copy(this.#memory, before);
    return this.#memory.length;
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

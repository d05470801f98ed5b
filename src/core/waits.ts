/** Waits of this process, which end when it shuts down. */
export interface Waits {
  /** @returns what leaves; `end` is called at once when the process shuts down already */
  join(end: () => void): () => void;
  end(): void;
}

export function createWaits(): Waits {
  const waiting = new Set<() => void>();
  let ended = false;
  return {
    join(end) {
      if (ended) end();
      else waiting.add(end);
      return () => waiting.delete(end);
    },
    end() {
      ended = true;
      for (const end of [...waiting]) end();
    },
  };
}

import { UnderWay } from "../collections/under-way.ts";

/** Waits of this process, which end when it shuts down. */
export interface Waits {
  /**
   * Registers a wait; `end` is called on shutdown, or at once if that has begun.
   * @returns a function that removes the wait
   */
  join(end: () => void): () => void;
  end(): void;
}

export function createWaits(): Waits {
  const waiting = new UnderWay<() => void>();
  let ended = false;
  return {
    join(end) {
      if (ended) {
        end();
        return () => {};
      }
      const member = waiting.add(end);
      return () => member.leave();
    },
    end() {
      ended = true;
      for (const end of waiting) end();
    },
  };
}

import { Deque } from "../collections/deque.ts";
import { spreadOverTurns } from "../net/spread-over-turns.ts";

/**
 * Shares the event loop between readers of stored events and all other work. Stored events are
 * available all at once, and sending each one takes time: readers could block everything else.
 */
export type Turns = ReturnType<typeof createTurns>;

/** Stored events that all readers together get in one turn of the event loop. */
export const eventsPerTurn = 32;
/** Pages that are read, and decoded, at a time. */
export const pagesAtOnce = 4;

export function createTurns() {
  const inTurn = spreadOverTurns(eventsPerTurn);
  const pages = new Deque<() => void>();
  let reading = 0;

  /** Starts the next page in a turn of its own: by then the last one is decoded. */
  function nextPage(): void {
    reading -= 1;
    pages.shift()?.();
  }

  return {
    /** Resolves when a reader may have its next event. */
    take: () => new Promise<void>(inTurn),
    /** Reads a page as soon as fewer than `pagesAtOnce` others are being read. */
    async page<T>(read: () => Promise<T>): Promise<T> {
      if (reading >= pagesAtOnce) await new Promise<void>((resolve) => pages.push(resolve));
      reading += 1;
      try {
        return await read();
      } finally {
        setImmediate(nextPage);
      }
    },
  };
}

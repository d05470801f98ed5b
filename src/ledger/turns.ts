import { Deque } from "../collections/deque.ts";

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
  const readers = new Deque<() => void>();
  const pages = new Deque<() => void>();
  let left = eventsPerTurn;
  let reading = 0;
  let scheduled = false;

  function turn(): void {
    scheduled = false;
    left = eventsPerTurn;
    for (; left > 0 && readers.length > 0; left -= 1) readers.shift()?.();
    if (readers.length > 0) schedule();
  }

  function schedule(): void {
    if (scheduled) return;
    scheduled = true;
    setImmediate(turn);
  }

  /** Starts the next page in a turn of its own: by then the last one is decoded. */
  function nextPage(): void {
    reading -= 1;
    pages.shift()?.();
  }

  return {
    /** Undefined if the reader may continue at once, else a promise that resolves at its turn. */
    take(): Promise<void> | undefined {
      schedule();
      if (left > 0) {
        left -= 1;
        return undefined;
      }
      return new Promise((resolve) => readers.push(resolve));
    },
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

import type { LimitObserver } from "./observer.ts";

/** How to measure and cut writers, and how many unread bytes they may hold. */
export interface UnreadMemory<Writer> {
  readonly bytesOf: (writer: Writer) => number;
  readonly cut: (writer: Writer) => void;
  /** Most unread bytes of all writers together. */
  readonly maxBytes: number;
}

/** A set of writers. `forEach` visits thousands of them without a copy or an iterator. */
interface Watched<Writer> extends Iterable<Writer> {
  forEach(look: (writer: Writer) => void): void;
}

/** Twice a second, cuts writers with the most unread bytes until the rest fits in `maxBytes`. */
export function boundUnread<Writer>(
  watched: Watched<Writer>,
  { bytesOf, cut, maxBytes }: UnreadMemory<Writer>,
  observer: LimitObserver,
): { close(): void } {
  const sweep = setInterval(() => {
    let total = 0;
    watched.forEach((writer) => {
      total += bytesOf(writer);
    });
    if (total <= maxBytes) return;
    for (const writer of [...watched].sort((a, b) => bytesOf(b) - bytesOf(a))) {
      if (total <= maxBytes) return;
      total -= bytesOf(writer);
      observer.onCut("unread_memory");
      cut(writer);
    }
  }, sweepIntervalMs).unref();
  return { close: () => clearInterval(sweep) };
}

const sweepIntervalMs = 500;

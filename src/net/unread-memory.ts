import type { LimitObserver } from "./observer.ts";

/** What writes to a client, as far as its unread bytes go. */
export interface UnreadMemory<Writer> {
  readonly bytesOf: (writer: Writer) => number;
  readonly cut: (writer: Writer) => void;
  /** Of all of them together. */
  readonly maxBytes: number;
}

/** Thousands of them are looked at without a copy, and without an iterator. */
interface Watched<Writer> extends Iterable<Writer> {
  forEach(look: (writer: Writer) => void): void;
}

/** Twice a second cuts the largest of what waits for its clients, until the rest is within its bounds. */
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

import type { WebSocket } from "ws";
import type { LimitObserver } from "../limits/observer.ts";
import { defaultUnreadLimits } from "../limits/unread-answers.ts";

/** Bounds the memory that waits for the clients of all sockets together. */
export interface UnreadSockets {
  watch(socket: WebSocket): void;
  close(): void;
}

/**
 * One client that does not read is cut by its heartbeat. Until then many of them may hold the answers
 * of all the operations that a socket may have: the largest are cut at once.
 * @param maxUnreadBytes of all sockets together
 */
export function createUnreadSockets(
  observer: LimitObserver,
  maxUnreadBytes: number = defaultUnreadLimits.maxUnreadBytes,
): UnreadSockets {
  const watched = new Set<WebSocket>();
  const sweep = setInterval(() => {
    let total = 0;
    for (const { bufferedAmount } of watched) total += bufferedAmount;
    if (total <= maxUnreadBytes) return;
    for (const socket of [...watched].sort((a, b) => b.bufferedAmount - a.bufferedAmount)) {
      if (total <= maxUnreadBytes) return;
      total -= socket.bufferedAmount;
      observer.onCut("unread_memory");
      socket.terminate();
    }
  }, sweepIntervalMs).unref();

  return {
    watch(socket) {
      watched.add(socket);
      socket.once("close", () => watched.delete(socket));
    },
    close() {
      clearInterval(sweep);
    },
  };
}

const sweepIntervalMs = 500;

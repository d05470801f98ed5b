import type { WebSocket } from "ws";
import type { LimitObserver } from "../../net/observer.ts";
import { defaultUnreadLimits } from "../../net/unread-answers.ts";
import { boundUnread } from "../../net/unread-memory.ts";

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
  const bound = boundUnread(
    watched,
    {
      bytesOf: ({ bufferedAmount }) => bufferedAmount,
      cut: (socket) => socket.terminate(),
      maxBytes: maxUnreadBytes,
    },
    observer,
  );

  return {
    watch(socket) {
      watched.add(socket);
      socket.on("close", () => watched.delete(socket));
    },
    close: bound.close,
  };
}

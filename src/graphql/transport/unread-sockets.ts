import type { WebSocket } from "ws";
import type { LimitObserver } from "../../net/observer.ts";
import { defaultUnreadLimits } from "../../net/unread-answers.ts";
import { boundUnread } from "../../net/unread-memory.ts";

/** Limits the unread bytes of the clients of all sockets together. */
export interface UnreadSockets {
  watch(socket: WebSocket): void;
  close(): void;
}

/**
 * Cuts the sockets with the most unread bytes once all together exceed a limit. `keepAlive` cuts
 * each client that does not read, but until then many could hold the responses of all the
 * operations that a socket may have.
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

import type { WebSocket } from "ws";
import type { OnCut } from "../../net/cut.ts";
import type { MemoryBudget } from "../../net/memory-budget.ts";
import type { Arriving } from "./websocket-limits.ts";

/** Limits what all sockets hold together: unread answers, and messages that arrive. */
export interface UnreadSockets {
  watch(socket: WebSocket, arriving: Arriving): void;
  close(): void;
}

/**
 * Counts the unread bytes of sockets against the budget, which cuts those with the most. `keepAlive`
 * cuts each client that does not read, but until then many could hold the responses of all the
 * operations that a socket may have.
 */
export function createUnreadSockets(budget: MemoryBudget, onCut: OnCut): UnreadSockets {
  const watched = new Set<{ readonly socket: WebSocket; readonly arriving: Arriving }>();
  const close = budget.watch(
    {
      writers: watched,
      bytesOf: ({ socket, arriving }) => socket.bufferedAmount + arriving.bytes,
      cut: ({ socket }) => socket.terminate(),
    },
    onCut,
  );

  return {
    watch(socket, arriving) {
      const member = { socket, arriving };
      watched.add(member);
      socket.on("close", () => watched.delete(member));
    },
    close,
  };
}

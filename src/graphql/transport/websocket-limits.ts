import type { WebSocket } from "ws";
import { createAllowance } from "../../net/allowance.ts";
import type { LimitObserver } from "../../net/observer.ts";

/** What one WebSocket may do. */
export const socketLimits = {
  /** Messages, pings and pongs. */
  messages: { burst: 1_000, perSecond: 100 },
} as const;

/** Ends a socket whose client sends without end. */
export function limitSocket(socket: WebSocket, observer: LimitObserver): void {
  const maySend = createAllowance(socketLimits.messages);
  let isCut = false;
  const check = () => {
    if (isCut || socket.readyState === socket.CLOSED || maySend()) return;
    isCut = true;
    observer.onCut("message_flood");
    // Closing would wait for the client, and read on meanwhile.
    socket.terminate();
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

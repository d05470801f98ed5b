import type { WebSocket } from "ws";
import { createAllowance } from "../../net/allowance.ts";
import type { LimitObserver } from "../../net/observer.ts";

/** Limits of one WebSocket. */
export const socketLimits = {
  /** Messages, pings and pongs from the client. */
  messages: { burst: 1_000, perSecond: 100 },
} as const;

/** Terminates a socket whose client sends more messages than the limit. */
export function limitSocket(socket: WebSocket, observer: LimitObserver): void {
  const maySend = createAllowance(socketLimits.messages);
  let isCut = false;
  const check = () => {
    if (isCut || socket.readyState === socket.CLOSED || maySend()) return;
    isCut = true;
    observer.onCut("message_flood");
    // A close would wait for the client, and read on meanwhile.
    socket.terminate();
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

import type { WebSocket } from "ws";
import { createAllowance } from "../limits/allowance.ts";
import type { Cut, LimitObserver } from "../limits/observer.ts";

/** What one WebSocket may do. */
export const socketLimits = {
  /** Messages, pings and pongs. */
  messages: { burst: 1_000, perSecond: 100 },
  /** Bytes that wait for the client to read, when it asks for more. */
  unreadBytes: 4 * 1024 * 1024,
} as const;

/** Ends a socket whose client sends without end, or asks for answers that it does not read. */
export function limitSocket(
  socket: WebSocket,
  observer: LimitObserver,
  limits: Pick<typeof socketLimits, "messages" | "unreadBytes"> = socketLimits,
): void {
  const maySend = createAllowance(limits.messages);
  const check = () => {
    if (socket.readyState === socket.CLOSED) return;
    if (socket.bufferedAmount > limits.unreadBytes) cut("unread_answer");
    else if (!maySend()) cut("message_flood");
  };
  let isCut = false;
  function cut(reason: Cut): void {
    if (isCut) return;
    isCut = true;
    observer.onCut(reason);
    // Closing would wait for the client, and read on meanwhile.
    socket.terminate();
  }
  socket.on("message", check).on("ping", check).on("pong", check);
}

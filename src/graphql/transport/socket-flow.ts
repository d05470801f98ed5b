import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { LimitObserver } from "../../net/observer.ts";
import { failedStreamMs } from "../../net/unread-answers.ts";

/**
 * Reads nothing more from a client while it does not read: answers, and pongs, would pile up. Its own
 * pongs are not heard either, asked for or not, so that a client that keeps that up is cut by
 * `keepAlive`.
 */
export function readOnlyWhileRead(socket: WebSocket, connection: Duplex): void {
  const check = () => {
    if (!connection.writableNeedDrain || socket.isPaused) return;
    socket.pause();
    connection.once("drain", () => socket.resume());
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

/** Cuts the socket of a failed operation, unless its client soon reads on and gets the error. */
export function cutIfUnread(socket: WebSocket, isOver: () => boolean): void {
  setTimeout(() => {
    if (!isOver() && socket.bufferedAmount > 0) socket.terminate();
  }, failedStreamMs).unref();
}

/**
 * Ends a connection whose other side is gone without a word, or does not read: it is asked once per
 * interval.
 */
export function keepAlive(socket: WebSocket, observer: LimitObserver, intervalMs: number): void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const timer = setInterval(() => {
    if (!answered) {
      if (socket.bufferedAmount > 0) observer.onCut("unread_answer");
      return socket.terminate();
    }
    answered = false;
    socket.ping();
  }, intervalMs);
  socket.on("close", () => clearInterval(timer));
}

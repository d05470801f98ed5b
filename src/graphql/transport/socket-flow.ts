import type { Duplex } from "node:stream";
import type { WebSocket } from "ws";
import type { Heartbeats } from "../../live/heartbeats.ts";
import type { OnCut } from "../../net/cut.ts";

/**
 * Stops reading from a client while it does not read, since responses and pongs would pile up. Its
 * own pongs are then not received either, so `keepAlive` cuts a client that does not read for long.
 */
export function readOnlyWhileRead(socket: WebSocket, connection: Duplex): void {
  const check = () => {
    if (!connection.writableNeedDrain || socket.isPaused) return;
    socket.pause();
    resumeWhenRead(socket, connection);
  };
  socket.on("message", check).on("ping", check).on("pong", check);
}

/** Reads on from a client, once it has read what waits for it. */
export function resumeWhenRead(socket: WebSocket, connection: Duplex): void {
  if (connection.writableNeedDrain) connection.once("drain", () => socket.resume());
  else socket.resume();
}

/**
 * Pings a client as a silent stream gets its heartbeats, and cuts the connection if it has not
 * answered by the next ping: it has disappeared, or does not read.
 */
export function keepAlive(socket: WebSocket, onCut: OnCut, heartbeats: Heartbeats): void {
  let answered = true;
  socket.on("pong", () => {
    answered = true;
  });
  const beats = heartbeats.add(() => {
    if (!answered) {
      if (socket.bufferedAmount > 0) onCut("unread_answer");
      return socket.terminate();
    }
    answered = false;
    socket.ping();
  });
  socket.on("close", () => beats.stop());
}

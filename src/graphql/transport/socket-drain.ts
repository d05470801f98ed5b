import type { WebSocket } from "ws";
import { Drain } from "../../live/drain.ts";

/** How long a listener takes to close its sockets when it shuts down, in milliseconds. */
export interface DrainTimes {
  /** Longest period over which the closing of idle sockets is spread. */
  readonly spreadMs: number;
  /** Longest time for operations; then their sockets are closed, and soon after terminated. */
  readonly timeoutMs: number;
}

/** The open sockets, and how many operations each has in progress. */
export interface SocketDrain {
  add(socket: WebSocket): void;
  /** @param operation settles when its last message has been passed to the socket */
  track(socket: WebSocket, operation: Promise<unknown>): void;
  /** Closes each socket when its operations are over, so that no client misses a last message. */
  drain(times: DrainTimes): Promise<void>;
}

/** How long clients may take to answer the close of their socket. */
const closeGraceMs = 1_000;

export function createSocketDrain(): SocketDrain {
  const underWay = new Map<WebSocket, number>();
  const open = new Drain();
  let draining = false;

  function closeIfIdle(socket: WebSocket): void {
    if (underWay.get(socket) === 0) close(socket);
  }

  function close(socket: WebSocket): void {
    if (socket.readyState !== socket.OPEN) return;
    // Clients of graphql-transport-ws reconnect after this code.
    socket.close(1012, "Service Restart");
    const cut = setTimeout(() => socket.terminate(), closeGraceMs);
    socket.once("close", () => clearTimeout(cut));
  }

  return {
    add(socket) {
      underWay.set(socket, 0);
      const leave = open.join(() => closeIfIdle(socket));
      socket.once("close", () => {
        underWay.delete(socket);
        leave();
      });
    },
    track(socket, operation) {
      const change = (by: number) => {
        const count = underWay.get(socket);
        if (count !== undefined) underWay.set(socket, count + by);
      };
      const over = () => {
        change(-1);
        if (draining) closeIfIdle(socket);
      };
      change(1);
      operation.then(over, over);
    },
    async drain({ spreadMs, timeoutMs }) {
      draining = true;
      const sockets = [...underWay.keys()];
      open.end(new Error("the gateway is shutting down"), spreadMs);
      const timeUp = setTimeout(() => sockets.forEach(close), timeoutMs);
      await Promise.all(
        sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve))),
      );
      clearTimeout(timeUp);
    },
  };
}

import type { WebSocket } from "ws";

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
/** Each open socket's share of that period, so that a few close fast; at most `spreadMs` in all. */
const spreadPerSocketMs = 10;

export function createSocketDrain(): SocketDrain {
  const underWay = new Map<WebSocket, number>();
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
      socket.once("close", () => underWay.delete(socket));
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
      const open = [...underWay.keys()];
      const windowMs = Math.min(spreadMs, open.length * spreadPerSocketMs);
      const turns = open.map((socket) =>
        setTimeout(() => closeIfIdle(socket), Math.random() * windowMs),
      );
      const timeUp = setTimeout(() => open.forEach(close), timeoutMs);
      await Promise.all(
        open.map((socket) => new Promise((resolve) => socket.once("close", resolve))),
      );
      for (const timer of [...turns, timeUp]) clearTimeout(timer);
    },
  };
}

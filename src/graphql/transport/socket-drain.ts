import type { WebSocket } from "ws";

/** How the sockets of a listener go when it shuts down. */
export interface DrainTimes {
  /** Longest time over which those that have nothing under way are closed. */
  readonly spreadMs: number;
  /** Longest time that operations have; their sockets are closed then, and cut soon after. */
  readonly timeoutMs: number;
}

/** The open sockets, and how many operations each has under way. */
export interface SocketDrain {
  add(socket: WebSocket): void;
  /** `operation` is over when all that is to be sent for it is handed to the socket. */
  track(socket: WebSocket, operation: Promise<unknown>): void;
  /** Closes each socket when its operations are over, so that none loses its last message. */
  drain(times: DrainTimes): Promise<void>;
}

/** How long clients may take to answer the close of their socket. */
const closeGraceMs = 1_000;
/** A few sockets need no time to spread: so much for each, and `spreadMs` for all at most. */
const spreadPerSocketMs = 10;

export function createSocketDrain(): SocketDrain {
  const underWay = new Map<WebSocket, number>();
  let draining = false;

  function closeIfIdle(socket: WebSocket): void {
    if (underWay.get(socket) === 0) close(socket);
  }

  function close(socket: WebSocket): void {
    if (socket.readyState !== socket.OPEN) return;
    // Clients of graphql-transport-ws connect again after this code.
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

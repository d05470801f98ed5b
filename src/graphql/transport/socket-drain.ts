import type { WebSocket } from "ws";
import { Drain } from "../../live/drain.ts";

/** How long a listener takes to close its sockets when it shuts down, in milliseconds. */
export interface DrainTimes {
  /** Longest period over which the closing of idle sockets is spread. */
  readonly spreadMs: number;
  /** Longest time for operations; then their sockets are closed, and soon after terminated. */
  readonly timeoutMs: number;
}

/** How long clients may take to answer the close of their socket. */
const closeGraceMs = 1_000;

/** The open sockets of a listener, which shut down once their operations are over. */
export class SocketDrain {
  readonly #sockets: ReadonlySet<WebSocket>;
  readonly #open = new Drain();
  hasBegun = false;

  constructor(sockets: ReadonlySet<WebSocket>) {
    this.#sockets = sockets;
  }

  /**
   * Adds a socket. The returned function tells of an operation, which settles when its last message
   * has been passed to the socket.
   */
  add(socket: WebSocket): (operation: Promise<unknown>) => void {
    let underWay = 0;
    const closeIfIdle = () => {
      if (underWay === 0) close(socket);
    };
    socket.once("close", this.#open.join(closeIfIdle));
    const over = () => {
      underWay -= 1;
      if (this.hasBegun) closeIfIdle();
    };
    return (operation) => {
      underWay += 1;
      operation.then(over, over);
    };
  }

  /** Closes each socket when its operations are over, so that no client misses a last message. */
  async drain({ spreadMs, timeoutMs }: DrainTimes): Promise<void> {
    this.hasBegun = true;
    const sockets = [...this.#sockets];
    this.#open.end(new Error("the gateway is shutting down"), spreadMs);
    const timeUp = setTimeout(() => sockets.forEach(close), timeoutMs);
    await Promise.all(
      sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve))),
    );
    clearTimeout(timeUp);
  }
}

function close(socket: WebSocket): void {
  if (socket.readyState !== socket.OPEN) return;
  // Clients of graphql-transport-ws reconnect after this code.
  socket.close(1012, "Service Restart");
  const cut = setTimeout(() => socket.terminate(), closeGraceMs);
  socket.once("close", () => clearTimeout(cut));
}

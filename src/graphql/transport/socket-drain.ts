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

/** The open sockets, and how many operations each has in progress. */
export class SocketDrain {
  readonly #underWay = new Map<WebSocket, number>();
  readonly #open = new Drain();
  #draining = false;

  add(socket: WebSocket): void {
    this.#underWay.set(socket, 0);
    const leave = this.#open.join(() => this.#closeIfIdle(socket));
    socket.once("close", () => {
      this.#underWay.delete(socket);
      leave();
    });
  }

  /** @param operation settles when its last message has been passed to the socket */
  track(socket: WebSocket, operation: Promise<unknown>): void {
    const change = (by: number) => {
      const count = this.#underWay.get(socket);
      if (count !== undefined) this.#underWay.set(socket, count + by);
    };
    const over = () => {
      change(-1);
      if (this.#draining) this.#closeIfIdle(socket);
    };
    change(1);
    operation.then(over, over);
  }

  /** Closes each socket when its operations are over, so that no client misses a last message. */
  async drain({ spreadMs, timeoutMs }: DrainTimes): Promise<void> {
    this.#draining = true;
    const sockets = [...this.#underWay.keys()];
    this.#open.end(new Error("the gateway is shutting down"), spreadMs);
    const timeUp = setTimeout(() => sockets.forEach(close), timeoutMs);
    await Promise.all(
      sockets.map((socket) => new Promise((resolve) => socket.once("close", resolve))),
    );
    clearTimeout(timeUp);
  }

  #closeIfIdle(socket: WebSocket): void {
    if (this.#underWay.get(socket) === 0) close(socket);
  }
}

function close(socket: WebSocket): void {
  if (socket.readyState !== socket.OPEN) return;
  // Clients of graphql-transport-ws reconnect after this code.
  socket.close(1012, "Service Restart");
  const cut = setTimeout(() => socket.terminate(), closeGraceMs);
  socket.once("close", () => clearTimeout(cut));
}

import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onePerTurn } from "./spread-over-turns.ts";

/**
 * Spreads the reading of HTTP/1.1 connections over turns of the event loop. Node reads all
 * connections that have sent something in one turn, and nothing stops its parser within a read: 64
 * KiB in chunks of one byte take 10 ms, on a hundred connections at once a second.
 */
export class ReadTurns {
  readonly #sockets = new Set<Duplex>();
  readonly #inTurn = onePerTurn();
  #waiting = 0;
  #startedMs: number | undefined;

  /** Includes a connection until it is closed. */
  add(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }

  /** Leaves out a connection that HTTP/1.1 no longer reads. */
  remove(socket: Duplex): void {
    this.#sockets.delete(socket);
  }

  /**
   * A part of a body was read. Once that has gone on for `longMs` in one turn, the connections that
   * are still unread are read later, one in each turn.
   */
  hasRead(): void {
    const nowMs = performance.now();
    if (this.#startedMs === undefined) {
      this.#startedMs = nowMs;
      setImmediate(() => {
        this.#startedMs = undefined;
      });
    } else if (nowMs - this.#startedMs > longMs && this.#waiting === 0) {
      // Each has its turn before any waits again.
      for (const socket of this.#sockets) this.#hold(socket);
    }
  }

  #hold(socket: Duplex): void {
    // One that is paused already waits for something else.
    if (socket.isPaused() || socket.destroyed) return;
    socket.pause();
    this.#waiting += 1;
    this.#inTurn(() => {
      this.#waiting -= 1;
      socket.resume();
    });
  }
}

const longMs = 10;

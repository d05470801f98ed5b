import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { onePerTurn } from "./spread-over-turns.ts";

/**
 * Spreads the reading of HTTP/1.1 connections over turns of the event loop. Node reads all
 * connections that have sent something in one turn, and nothing stops its parser within a read: 64
 * KiB in chunks of one byte take 10 ms, on a hundred connections at once a second.
 */
export interface ReadTurns {
  /** Includes a connection until it is closed. */
  add(socket: Socket): void;
  /** Leaves out a connection that HTTP/1.1 no longer reads. */
  remove(socket: Duplex): void;
  /**
   * A part of a body was read. Once that has gone on for `longMs` in one turn, the connections that
   * are still unread are read later, one in each turn.
   */
  hasRead(): void;
}

const longMs = 10;

export function createReadTurns(): ReadTurns {
  const sockets = new Set<Duplex>();
  const inTurn = onePerTurn();
  let waiting = 0;
  let startedMs: number | undefined;

  function hold(socket: Duplex): void {
    // One that is paused already waits for something else.
    if (socket.isPaused() || socket.destroyed) return;
    socket.pause();
    waiting += 1;
    inTurn(() => {
      waiting -= 1;
      socket.resume();
    });
  }

  return {
    add(socket) {
      sockets.add(socket);
      socket.once("close", () => sockets.delete(socket));
    },
    remove: (socket) => void sockets.delete(socket),
    hasRead() {
      const nowMs = performance.now();
      if (startedMs === undefined) {
        startedMs = nowMs;
        setImmediate(() => {
          startedMs = undefined;
        });
      } else if (nowMs - startedMs > longMs && waiting === 0) {
        // Each has its turn before any waits again.
        sockets.forEach(hold);
      }
    },
  };
}

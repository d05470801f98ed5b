import type { Server, Socket } from "node:net";
import type { LimitObserver } from "./observer.ts";

/**
 * Connections that the system may hold for a listener until it accepts them (Linux: no more than
 * `net.core.somaxconn`). Node's own 511 are full at once when a replica dies and thousands of its watchers
 * come here: whoever is dropped tries again after 1, 3, 7 and 15 seconds.
 */
export const acceptBacklog = 4_096;

export interface ConnectionCounts {
  /** Connections that a listener has at once; undefined: as many as the system lets it. */
  readonly maxConnections?: number | undefined;
  /** Of them, from one address; undefined: all of them, since behind a proxy all are from one. */
  readonly maxConnectionsPerAddress?: number | undefined;
}

/**
 * Holds a listener to a number of connections. One too many is closed before a byte of it is read,
 * and `makeRoom` closes idle ones, so that those who come next get in.
 */
export function limitConnections(
  server: Server,
  { maxConnections, maxConnectionsPerAddress }: ConnectionCounts,
  observer: LimitObserver,
  makeRoom: () => void,
): void {
  if (maxConnections !== undefined) {
    server.maxConnections = maxConnections;
    server.on("drop", () => {
      observer.onCut("connections");
      makeRoom();
    });
  }
  if (maxConnectionsPerAddress === undefined) return;
  const counts = new Map<string, number>();
  // Before the listeners that begin to read.
  server.prependListener("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const count = counts.get(address) ?? 0;
    if (count >= maxConnectionsPerAddress) {
      observer.onCut("connections_of_address");
      socket.destroy();
      return;
    }
    counts.set(address, count + 1);
    socket.on("close", () => {
      const left = (counts.get(address) ?? 1) - 1;
      if (left > 0) counts.set(address, left);
      else counts.delete(address);
    });
  });
}

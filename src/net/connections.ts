import type { Server, Socket } from "node:net";
import type { OnCut } from "./cut.ts";

/**
 * Connections that the system may hold for a listener until it accepts them (Linux: no more than
 * `net.core.somaxconn`). Node's default of 511 is full at once when a replica dies and thousands of
 * its watchers connect here; the system of a client that is dropped tries again after 1, 3, 7 and
 * 15 seconds.
 */
export const acceptBacklog = 4_096;

export interface ConnectionCounts {
  /** Most connections of a listener at once; undefined: as many as the system allows. */
  readonly maxConnections?: number | undefined;
  /** Most of them from one address; undefined: no limit, since a proxy has one address for all. */
  readonly maxConnectionsPerAddress?: number | undefined;
}

/**
 * Limits the connections of a listener. A connection beyond a limit is closed before a byte of it
 * is read. Beyond `maxConnections`, `makeRoom` closes idle connections, so that the next clients
 * get in.
 */
export function limitConnections(
  server: Server,
  { maxConnections, maxConnectionsPerAddress }: ConnectionCounts,
  onCut: OnCut,
  makeRoom: () => void,
): void {
  // Without a listener, such an error would end the process.
  server.on("error", () => server.listening && onCut("not_accepted"));
  if (maxConnections !== undefined) {
    server.maxConnections = maxConnections;
    server.on("drop", () => {
      onCut("connections");
      makeRoom();
    });
  }
  if (maxConnectionsPerAddress === undefined) return;
  const counts = new Map<string, number>();
  // Runs before the listeners that begin to read.
  server.prependListener("connection", (socket: Socket) => {
    const address = socket.remoteAddress ?? "";
    const count = counts.get(address) ?? 0;
    if (count >= maxConnectionsPerAddress) {
      onCut("connections_of_address");
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

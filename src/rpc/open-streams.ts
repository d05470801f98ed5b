import type { RequestHead } from "../net/request-head.ts";

/**
 * Limits the streams that need no credentials, on each connection and of all together. The returned
 * function counts one until its request is over; it returns false if that would be too many.
 */
export function limitOpenStreams(maxConnections: number = 10_000): (head: RequestHead) => boolean {
  const ofConnection = new WeakMap<object, number>();
  // Each keeps its connection from counting as idle: they may hold but a share of the connections.
  const most = Math.min(1_000, Math.max(1, Math.floor(maxConnections / 10)));
  let all = 0;

  return ({ connection, onClose }) => {
    const count = ofConnection.get(connection) ?? 0;
    if (count >= openStreamsPerConnection || all >= most) return false;
    ofConnection.set(connection, count + 1);
    all += 1;
    onClose(() => {
      ofConnection.set(connection, (ofConnection.get(connection) ?? 1) - 1);
      all -= 1;
    });
    return true;
  };
}

/** A client usually watches the health of one or two services. */
export const openStreamsPerConnection = 10;

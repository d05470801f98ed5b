import type { Cluster, Redis } from "ioredis";
import { isCluster } from "./link.ts";

/**
 * Sends all commands of one turn of the event loop in one piece: a socket write for each command
 * would cost the process, and the server, more than the command itself. No command waits for longer
 * than the turn lasts, and their order stays.
 */
export function joinWrites(client: Redis | Cluster): void {
  if (isCluster(client)) {
    client.nodes("all").forEach(ofConnection);
    client.on("+node", ofConnection);
  } else ofConnection(client);
}

function ofConnection(client: Redis): void {
  client.on("connect", () => {
    const { stream } = client;
    if (!stream) return;
    const write = stream.write.bind(stream) as (...args: unknown[]) => boolean;
    const send = () => stream.uncork();
    stream.write = (...args: unknown[]) => {
      if (stream.writableCorked === 0) {
        stream.cork();
        setImmediate(send);
      }
      return write(...args);
    };
  });
}

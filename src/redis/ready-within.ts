import type { Cluster, Redis } from "ioredis";

/**
 * Resolves when the connection is ready for commands, or after `ms` if it is not: never rejects. Keeps
 * the process alive so long: at a start without Redis nothing else may.
 */
export function readyWithin(ms: number, client: Redis | Cluster): Promise<void> {
  if (client.status === "ready") return Promise.resolve();
  return new Promise((resolve) => {
    const go = () => {
      client.off("ready", go);
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(go, ms);
    client.on("ready", go);
  });
}

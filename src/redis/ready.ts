import type { RedisClient } from "./connect.ts";

/** The waiters of each client: a thousand accounts wait at a start, with one listener for all. */
const waiting = new WeakMap<RedisClient, Set<() => void>>();

/** Resolves when the connection is ready for commands, or after `ms` if it is not: never rejects. */
export function readyWithin(ms: number, client: RedisClient): Promise<void> {
  if (client.status === "ready") return Promise.resolve();
  const all = waitersOf(client);
  return new Promise((resolve) => {
    const go = () => {
      all.delete(go);
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(go, ms).unref();
    all.add(go);
  });
}

function waitersOf(client: RedisClient): Set<() => void> {
  const known = waiting.get(client);
  if (known) return known;
  const all = new Set<() => void>();
  waiting.set(client, all);
  client.once("ready", () => {
    waiting.delete(client);
    for (const go of all) go();
  });
  return all;
}

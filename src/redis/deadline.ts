import type { Cluster, Redis } from "ioredis";

/** Redis, or a disk, did not answer in time. The command may have run all the same. */
export class RedisTimeout extends Error {
  override readonly name = "RedisTimeout";
  constructor(ms: number) {
    super(`the store did not answer within ${ms} ms`);
  }
}

/**
 * Rejects with RedisTimeout after `ms`: a stalled server never answers. If this process itself was
 * blocked meanwhile, it waits once more for as long as it was blocked, at most `ms`.
 */
export function within<T>(ms: number, answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const dueMs = performance.now() + ms;
    // First read an answer that arrived while this process was busy.
    const late = () => setImmediate(() => reject(new RedisTimeout(ms)));
    const due = () => {
      const stoodStillMs = performance.now() - dueMs;
      if (stoodStillMs < stallMs) late();
      else timer = setTimeout(late, Math.min(stoodStillMs, ms));
    };
    let timer = setTimeout(due, ms);
    const ended = (settle: (outcome: T) => void) => (outcome: T) => {
      clearTimeout(timer);
      settle(outcome);
    };
    answer.then(ended(resolve), ended(reject));
  });
}

/** A timer that is late by this much means that the process was blocked, in milliseconds. */
const stallMs = 50;

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

import type { Redis } from "ioredis";
import { repeat } from "../net/timer.ts";
import { readRole } from "./acknowledged.ts";
import type { RedisClient } from "./connect.ts";
import { within } from "./deadline.ts";
import { isCluster } from "./link.ts";

const answerMs = 500;
const everyMs = 10_000;
/** The pause after a failed count. */
const retryMs = 500;

/**
 * Counts every 10 s how many replicas are in sync; in a cluster, those of the primary that has the
 * fewest. A failed count is not reported.
 */
export function countReplicas(
  client: RedisClient,
  onCount: (replicas: number) => void,
): { close(): void } {
  return repeat(
    () => fewest(client).catch(() => Infinity),
    (counted) => {
      if (counted === Infinity) return retryMs;
      onCount(counted);
      return everyMs;
    },
  );
}

async function fewest(client: RedisClient): Promise<number> {
  const servers: Redis[] = isCluster(client) ? client.nodes("master") : [client];
  const roles = await Promise.all(servers.map((server) => within(answerMs, server.role())));
  return Math.min(...roles.map((role) => readRole(role).replicas.size));
}

import type { Redis } from "ioredis";
import { repeat, within } from "../net/timer.ts";
import { infoField, readRole } from "./acknowledged.ts";
import { ask } from "./ask.ts";
import type { RedisClient, RedisConnector } from "./connect.ts";
import { isCluster } from "./link.ts";

/**
 * Returns a warning for the operator about what is lost when Redis's process ends; undefined if its
 * settings keep what was acknowledged. In a cluster all primaries are asked, and the first warning
 * is returned.
 * @throws GatewayError UNAVAILABLE if Redis does not answer.
 */
export async function describeDurability({
  client,
  sentinels,
}: Pick<RedisConnector, "client" | "sentinels">): Promise<string | undefined> {
  const kind = isCluster(client) ? "cluster" : sentinels ? "sentinel" : "alone";
  for (const server of primariesOf(client)) {
    const warning = await warningOf(server, kind);
    if (warning !== undefined) return warning;
  }
  return undefined;
}

const primariesOf = (client: RedisClient): Redis[] =>
  isCluster(client) ? client.nodes("master") : [client];

async function warningOf(
  server: Redis,
  kind: "alone" | "sentinel" | "cluster",
): Promise<string | undefined> {
  const info = await ask(server, () => server.info());
  const setting = (name: string) => infoField(info, name);
  const policy = setting("maxmemory_policy") ?? "noeviction";
  if (setting("maxmemory") !== "0" && policy !== "noeviction") {
    return `Redis may evict events, locks and Idempotency-Keys, so a call that moves money may be sent a second time: its maxmemory-policy is ${policy}, not noeviction`;
  }
  if (kind === "sentinel" && setting("config_file") === "") {
    return "Redis has no configuration file, in which Sentinel would note who is primary: a server that restarts in its first role may take the others back to what it knew then";
  }
  if (setting("aof_enabled") === "1") {
    const policy = kind === "alone" ? await configured(server, "appendfsync") : undefined;
    if (policy === undefined || policy === "always") return undefined;
    return `Redis does not wait until its disk has each write (appendfsync is ${policy}): a crash may lose events that were acknowledged last`;
  }
  const save = await configured(server, "save");
  if (save === undefined) {
    return "Redis has no append-only file, and does not tell whether it saves snapshots: events may be lost when it stops";
  }
  if (save === "") {
    return "Redis saves nothing on disk: events are lost when it stops (appendonly is off, save is empty)";
  }
  return `Redis saves only snapshots: a crash loses the events since the last one (appendonly is off, save is "${save}")`;
}

/** A setting; undefined where CONFIG is not allowed, as on most hosted Redis servers. */
async function configured(server: Redis, name: string): Promise<string | undefined> {
  try {
    const answer: unknown = await ask(server, () => server.config("GET", name));
    return Array.isArray(answer) ? String(answer[1]) : undefined;
  } catch {
    return undefined;
  }
}

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
  const count = async () => {
    const roles = primariesOf(client).map((server) => within(answerMs, server.role()));
    return Math.min(...(await Promise.all(roles)).map((role) => readRole(role).replicas.size));
  };
  return repeat(
    () => count().catch(() => Infinity),
    (counted) => {
      if (counted === Infinity) return retryMs;
      onCount(counted);
      return everyMs;
    },
  );
}

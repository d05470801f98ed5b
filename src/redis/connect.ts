import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Secret } from "../secrets/secret.ts";
import { linkOf } from "./link.ts";
import { type OnCommand, observeCommands } from "./observed-commands.ts";

/** A connection to Redis alone, through Sentinel, or to a cluster: the same commands. */
export type RedisClient = Redis | Cluster;

export interface RedisConnector {
  /** For commands that answer at once. One for the whole process. */
  readonly client: RedisClient;
  /** A connection of its own, for commands that block. The caller closes it. */
  dedicated(): RedisClient;
  close(): Promise<void>;
}

/**
 * Connects by `REDIS_URL`: `redis://`, `rediss://`, a comma-separated list for a cluster,
 * `redis+sentinel://host:port,host:port/master-name` for a Sentinel set.
 *
 * A command on a connection that is down fails at once instead of waiting for it, and a command in
 * flight when a connection breaks is not sent again: the callers know what may be repeated. Each
 * caller sets its own deadline around each await.
 *
 * @param onCommand hears of every command, of dedicated connections too
 */
export function connectRedis(
  url: Secret,
  onError: (error: Error) => void,
  onCommand?: OnCommand,
): RedisConnector {
  const open = (): RedisClient => {
    const client = clientOf(url.reveal());
    client.on("error", onError);
    linkOf(client);
    if (onCommand) observeCommands(client, onCommand);
    return client;
  };
  const client = open();
  return {
    client,
    dedicated: open,
    async close() {
      client.disconnect();
    },
  };
}

/** Redis back: connected again well within the 2 s that are promised. */
const reconnectMs = (tries: number) => Math.min(25 * 2 ** Math.min(tries, 5), 500);

const common = {
  connectTimeout: 1_000,
  enableOfflineQueue: false,
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  noDelay: true,
  keepAlive: 10_000,
  // A connection that went dead without a word is given up: longer than any answer may take.
  socketTimeout: 2_500,
  // After a failover the old master answers READONLY: look for the new one.
  reconnectOnError: (error: Error) => error.message.includes("READONLY"),
} satisfies RedisOptions;

function clientOf(url: string): RedisClient {
  if (url.startsWith("redis+sentinel://")) return new Redis(sentinelOptions(url));
  const nodes = url.split(",").map((node) => node.trim());
  if (nodes.length === 1) {
    return new Redis(nodes[0] ?? "", { ...common, retryStrategy: reconnectMs });
  }
  const { username, password, protocol } = new URL(nodes[0] ?? "");
  const cluster = new Cluster(nodes, {
    enableOfflineQueue: false,
    clusterRetryStrategy: reconnectMs,
    retryDelayOnFailover: 50,
    retryDelayOnClusterDown: 50,
    slotsRefreshTimeout: 1_000,
    redisOptions: {
      ...common,
      ...credentials(username, password),
      ...(protocol === "rediss:" ? { tls: {} } : {}),
    },
  });
  refreshSlots(cluster);
  return cluster;
}

/**
 * Asks every 5 s which node serves what. The driver's own `slotsRefreshInterval` goes on for ever,
 * and keeps the process, when the client is closed while an answer is awaited.
 */
function refreshSlots(cluster: Cluster): void {
  let timer: NodeJS.Timeout | undefined;
  cluster.on("ready", () => {
    clearInterval(timer);
    timer = setInterval(() => {
      if (cluster.status === "ready") cluster.refreshSlotsCache();
      else clearInterval(timer);
    }, 5_000).unref();
  });
}

function sentinelOptions(url: string) {
  const [, authority = "", name = ""] = /^redis\+sentinel:\/\/([^/]+)\/(.+)$/.exec(url) ?? [];
  const at = authority.lastIndexOf("@");
  const [username = "", password = ""] = authority.slice(0, Math.max(at, 0)).split(":");
  const sentinels = authority
    .slice(at + 1)
    .split(",")
    .map((node) => {
      const { hostname, port } = new URL(`redis://${node}`);
      return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 26_379) };
    });
  return {
    ...common,
    ...credentials(username, password),
    sentinels,
    name,
    retryStrategy: reconnectMs,
    sentinelRetryStrategy: reconnectMs,
    sentinelCommandTimeout: 500,
    failoverDetector: true,
  } satisfies RedisOptions;
}

function credentials(username: string, password: string): { username?: string; password?: string } {
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
}

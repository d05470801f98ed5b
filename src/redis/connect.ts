import { Cluster, Redis, type RedisOptions } from "ioredis";
import type { Secret } from "../secrets/secret.ts";
import { joinWrites } from "./joined-writes.ts";
import { keepConnected } from "./keep-connected.ts";
import { linkOf } from "./link.ts";
import { type OnCommand, observeCommands } from "./observed-commands.ts";
import {
  connectorTo,
  disconnectMs,
  hostAndPort,
  Sentinels,
  type ServerAddress,
} from "./sentinels.ts";

/** A connection to Redis alone, through Sentinel, or to a cluster: the same commands. */
export type RedisClient = Redis | Cluster;

export interface RedisConnector {
  /** For commands that answer at once. One for the whole process. */
  readonly client: RedisClient;
  /** A connection of its own, for commands that block. The caller closes it. */
  dedicated(): RedisClient;
  /** A connection to one server of the set, to be opened, and closed, by the caller. Never retried. */
  server(address: ServerAddress): Redis;
  /** Of a set that has them. */
  readonly sentinels: Sentinels | undefined;
  close(): Promise<void>;
}

export interface ConnectOptions {
  /** Hears of every command, of dedicated connections too. */
  readonly onCommand?: OnCommand;
  /** The Sentinels name another primary than before. */
  readonly onFailover?: () => void;
}

/**
 * Connects by `REDIS_URL`: `redis://`, `rediss://`, a comma-separated list for a cluster,
 * `redis+sentinel://host:port,host:port/master-name` for a Sentinel set.
 *
 * A command on a connection that is down fails at once instead of waiting for it, and a command in
 * flight when a connection breaks is not sent again: the callers know what may be repeated. Each
 * caller sets its own deadline around each await.
 *
 * Whatever ends a connection is mended, for ever, until its owner disconnects it.
 */
export function connectRedis(
  url: Secret,
  onError: (error: Error) => void,
  { onCommand, onFailover }: ConnectOptions = {},
): RedisConnector {
  const clients = new Set<RedisClient>();
  const set = sentinelSet(url.reveal());
  const sentinels =
    set &&
    new Sentinels({
      ...set,
      onPrimary() {
        onFailover?.();
        for (const each of clients) {
          if (each.status === "ready" || each.status === "connect") each.disconnect(true);
        }
      },
    });
  const open = (): RedisClient => {
    const client = clientOf(url.reveal(), sentinels);
    client.on("error", onError);
    linkOf(client);
    joinWrites(client);
    clients.add(client);
    keepConnected(client, reconnectMs, () => clients.delete(client));
    if (onCommand) observeCommands(client, onCommand);
    return client;
  };
  const client = open();
  return {
    client,
    dedicated: open,
    server(address) {
      const server = new Redis({
        ...serverOptions(url.reveal()),
        ...hostAndPort(address),
        lazyConnect: true,
        enableReadyCheck: false,
        retryStrategy: () => null,
      });
      server.on("error", onError);
      return server;
    },
    sentinels,
    async close() {
      client.disconnect();
      sentinels?.close();
    },
  };
}

/** Redis back: connected again well within the 2 s that are promised. */
const reconnectMs = (tries: number) => Math.min(25 * 2 ** Math.min(tries, 5), 500);

const common = {
  connectTimeout: 1_000,
  disconnectTimeout: disconnectMs,
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

function clientOf(url: string, sentinels: Sentinels | undefined): RedisClient {
  if (sentinels) {
    return new Redis({
      ...serverOptions(url),
      Connector: connectorTo(sentinels),
      retryStrategy: reconnectMs,
    });
  }
  const nodes = url.split(",").map((node) => node.trim());
  if (nodes.length === 1) {
    return new Redis(nodes[0] ?? "", { ...common, retryStrategy: reconnectMs });
  }
  const cluster = new Cluster(nodes, {
    enableOfflineQueue: false,
    clusterRetryStrategy: reconnectMs,
    retryDelayOnFailover: 50,
    retryDelayOnClusterDown: 50,
    slotsRefreshTimeout: 1_000,
    redisOptions: serverOptions(url),
  });
  refreshSlots(cluster);
  return cluster;
}

/** How any server of the set is spoken to. */
function serverOptions(url: string) {
  if (sentinelUrl.test(url)) return { ...common, ...credentials(userOf(url)) };
  const { username, password, protocol } = new URL(url.split(",")[0]?.trim() ?? "");
  return {
    ...common,
    ...credentials({ username, password }),
    ...(protocol === "rediss:" ? { tls: {} } : {}),
  };
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

/** `redis+sentinel://user:password@host:port,host:port/master-name` */
const sentinelUrl = /^redis\+sentinel:\/\/(?:([^/]*)@)?([^/@]+)\/(.+)$/;

function sentinelSet(url: string) {
  const [, , hosts = "", name = ""] = sentinelUrl.exec(url) ?? [];
  if (name === "") return undefined;
  const addresses = hosts.split(",").map((host) => {
    const { hostname, port } = new URL(`redis://${host}`);
    return { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 26_379) };
  });
  return { addresses, name };
}

function userOf(url: string): { username: string; password: string } {
  const [username = "", password = ""] = (sentinelUrl.exec(url)?.[1] ?? "").split(":");
  return { username, password };
}

function credentials({ username, password }: { username: string; password: string }): {
  username?: string;
  password?: string;
} {
  return {
    ...(username ? { username: decodeURIComponent(username) } : {}),
    ...(password ? { password: decodeURIComponent(password) } : {}),
  };
}

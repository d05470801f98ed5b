import { Cluster, Redis, type RedisOptions } from "ioredis";
import { type ClientTlsFiles, tlsOptions } from "../net/client-tls.ts";
import { repeat, within } from "../net/timer.ts";
import { noReport, type Report } from "../report.ts";
import type { Secret } from "../secrets/secret.ts";
import { connectorTo } from "./connector.ts";
import { keepConnected } from "./keep-connected.ts";
import { isCluster, Link, type ServerAddress } from "./link.ts";
import { connectionOptions, hostAndPort, Sentinels } from "./sentinels.ts";
import { parseRedisUrl } from "./url.ts";

/**
 * A connection to a single Redis, to a Sentinel set or to a cluster: all take the same commands.
 */
export type RedisClient = Redis | Cluster;

type ServerOptions = Omit<RedisOptions, "replyMapping">;

export interface RedisConnector {
  /** For commands that do not block. One for the whole process. */
  readonly client: RedisClient;
  /** A connection of its own, for commands that block. */
  dedicated(): RedisClient;
  /** A connection of its own, to listen to channels: in a cluster, to any node, which hears of all. */
  subscriber(): Redis;
  /** What one server of the set answers to INFO. */
  info(address: ServerAddress): Promise<string>;
  /** Only with a Sentinel set. */
  readonly sentinels: Sentinels | undefined;
  /** Closes the client, the dedicated connections and those to the Sentinels. */
  close(): Promise<void>;
}

export interface RedisConnectOptions {
  /** Hears of commands, on dedicated connections too, and of failovers. Default: nothing is reported. */
  readonly report?: Report;
  /** Files for `rediss://` and `rediss+sentinel://`. Default: those of the system, and no certificate of our own. */
  readonly tls?: ClientTlsFiles | undefined;
}

/**
 * Connects by `REDIS_URL`: `redis://`, `rediss://`, a comma-separated list for a cluster,
 * `redis+sentinel://host:port,host:port/master-name` for a Sentinel set. With `rediss+sentinel://` the
 * Sentinels and the servers that they name are all reached by TLS.
 *
 * A command on a connection that is down fails at once instead of waiting for it, and a command in
 * flight when a connection breaks is not sent again: the callers decide what may be repeated. Each
 * caller sets its own deadline around each await.
 *
 * A connection that ends, for whatever reason, is opened again until its owner disconnects it.
 */
export function connectRedis(
  url: Secret,
  onError: (error: Error) => void,
  { report = noReport, tls: files = {} }: RedisConnectOptions = {},
): RedisConnector {
  const clients = new Set<RedisClient>();
  const read = parseRedisUrl(url.reveal());
  if (!read) throw new Error("the URL of Redis is malformed");
  const { isTls, username, password, addresses, nodes, setName: name } = read;
  const tls = isTls ? tlsOptions(files) : undefined;
  const server: ServerOptions = {
    ...connectionOptions,
    // After a failover the old primary answers READONLY: look for the new one.
    reconnectOnError: ({ message }) => message.includes("READONLY"),
    ...(username && { username }),
    ...(password && { password }),
    ...(tls && { tls }),
  };
  const onPrimary = () => {
    report("redisFailover", {});
    for (const each of clients) {
      if (each.status === "ready" || each.status === "connect") each.disconnect(true);
    }
  };
  const sentinels =
    name === undefined ? undefined : new Sentinels({ addresses, name, tls, onPrimary });
  const open = (urls: readonly string[]): RedisClient => {
    const link = new Link();
    const Connector = connectorTo({
      link,
      tls,
      sentinels,
      anyOf: urls.length > 0 ? [] : addresses,
    });
    const client = clientOf(urls, { ...server, Connector });
    link.of(client);
    // A thousand accounts may wait for it at a start.
    client.setMaxListeners(0);
    client.on("error", (error: Error & { command?: { name: string } }) => {
      onError(error);
      // The driver would go on in database 0, among the keys of others.
      if (error.command?.name === "select") client.disconnect(true);
    });
    clients.add(client);
    const refreshing = isCluster(client) ? refreshSlots(client) : undefined;
    keepConnected(client, () => {
      clients.delete(client);
      refreshing?.close();
    });
    if (report !== noReport) reportCommands(client, report);
    return client;
  };
  const dedicated = () => open(sentinels ? [] : nodes);
  const client = dedicated();
  return {
    client,
    dedicated,
    // The driver's own for a cluster is opened anew without a pause when it is refused.
    subscriber: () => open(isCluster(client) || sentinels ? [] : nodes) as Redis,
    async info(address) {
      const place = hostAndPort(address);
      const one = new Redis({ ...server, ...place, lazyConnect: true, enableReadyCheck: false });
      one.on("error", onError);
      try {
        await within(infoMs, one.connect());
        return await within(infoMs, one.info());
      } finally {
        one.disconnect();
      }
    },
    sentinels,
    async close() {
      for (const each of clients) each.disconnect();
      sentinels?.close();
    },
  };
}

const infoMs = 500;

/** Reports every command of a client, including those in pipelines. */
function reportCommands(client: RedisClient, report: Report): void {
  const observed = client as Redis;
  const send = observed.sendCommand;
  observed.sendCommand = (command, ...rest) => {
    const startedMs = performance.now();
    const ended = (failed: boolean) => () => {
      const durationMs = performance.now() - startedMs;
      report("redisCommand", { command: command.name, failed, durationMs });
    };
    command.promise.then(ended(false), ended(true));
    return send.call(observed, command, ...rest);
  };
}

function clientOf(nodes: readonly string[], server: ServerOptions): RedisClient {
  const [one, ...others] = nodes;
  if (one === undefined) return new Redis(server);
  if (others.length === 0) return new Redis(one, server);
  return new Cluster([one, ...others], {
    enableOfflineQueue: false,
    clusterRetryStrategy: () => null,
    retryDelayOnFailover: 50,
    retryDelayOnClusterDown: 50,
    retryDelayOnTryAgain: 50,
    slotsRefreshTimeout: 1_000,
    redisOptions: server,
  });
}

/**
 * Refreshes every 5 s which node serves which slots. The driver's own `slotsRefreshInterval` never
 * stops, and keeps the process alive, if the client is closed while it waits for an answer.
 */
function refreshSlots(cluster: Cluster): { close(): void } {
  const refresh = async () => cluster.status === "ready" && cluster.refreshSlotsCache();
  return repeat(refresh, () => 5_000, 5_000);
}

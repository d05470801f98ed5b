import type { EventEmitter } from "node:events";
import slotOf from "cluster-key-slot";
import type { Cluster, Redis } from "ioredis";
import { systemCode } from "../net/system-errors.ts";

/** The address of a Redis server as the Sentinels, or the cluster, write it: `host:port`. */
export type ServerAddress = string;

/** Without loading the driver, which only a gateway with Redis needs. */
export function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster;
}

/**
 * What tells the connection that commands take now from a later one, which may lead to another
 * server. In a cluster it is the node that serves the key.
 */
export function connectionOf(client: Redis | Cluster, key: string): object | string | undefined {
  return isCluster(client) ? client.slots[slotOf(key)]?.[0] : client.stream;
}

/** What a link has to know of a socket. */
export interface Connection extends Pick<EventEmitter, "once"> {
  readonly bytesRead: number;
  /** Set if it is by TLS. */
  readonly encrypted?: boolean;
}

/** A server that takes longer to close an accepted connection counts as silent, not as away. */
const silentMs = 500;

/** What the last connection to one server has shown. */
class Server {
  isAway = false;
  #last: Connection | undefined;
  /** The last connection, once it was accepted; until it closes, or for as long as it says nothing. */
  #accepted: Connection | undefined;

  /** It accepts connections, and the last one has said nothing. */
  get isSilent(): boolean {
    return this.#accepted?.bytesRead === 0;
  }

  /** @param isEndedHere whether the connection was closed by this process, without an error */
  follow(connection: Connection, isEndedHere: () => boolean): void {
    let acceptedMs: number | undefined;
    let failure: Error | undefined;
    let isClosedThere = false;
    this.#last = connection;
    // With TLS, too, the server has accepted it then.
    connection.once("connect", () => {
      acceptedMs = performance.now();
      this.isAway = false;
      this.#accepted = connection;
    });
    connection.once("end", () => {
      isClosedThere = true;
    });
    connection.once("error", (error) => {
      failure = error;
      isClosedThere = isGone(error);
    });
    connection.once("close", () => {
      if (connection !== this.#last) return;
      if (connection.bytesRead > 0) {
        // The next connection shows at once whether the server is back.
        this.is({ away: false });
      } else if (isEndedHere()) {
        // That says nothing about the server.
      } else if (acceptedMs === undefined) {
        // The queue of those that wait for a silent server becomes full: then it does not accept any.
        const isLate = failure === undefined || systemCode(failure) === "ETIMEDOUT";
        if (isLate ? !this.isSilent : isClosedThere) this.is({ away: true });
      } else if (isClosedThere && performance.now() - acceptedMs < silentMs) {
        // By TLS a server without room for one more connection closes it, too, before it says so.
        if (!connection.encrypted) this.is({ away: true });
      }
    });
  }

  is({ away }: { readonly away: boolean }): void {
    this.isAway = away;
    this.#accepted = undefined;
  }
}

/**
 * What a client's connections have shown about the store so far. The store is away if the last
 * connection was refused, could not be made, or without TLS was closed by the server before it sent
 * anything, or if no Sentinel can be reached. A store that accepts connections and then stays silent
 * is not away, however long, nor is one that refuses a password or one more connection: it may still
 * serve other clients.
 */
export class Link {
  /** By address. */
  readonly #servers = new Map<string, Server>();
  /** The one that was tried last. */
  #last: Server | undefined;
  #cluster: Cluster | undefined;
  /** The servers that were tried since a cluster was ready last. */
  readonly #tried = new Set<Server>();
  #allFailed = false;
  #isDown = false;

  /** @param isEndedHere whether the connection was closed by this process, without an error */
  follow(connection: Connection, address: ServerAddress, isEndedHere = () => false): void {
    addresses.set(connection, address);
    this.#lastAt(address).follow(connection, isEndedHere);
  }

  /** No Sentinel names a primary. @param areAway whether that is so for all, not for this process */
  hasNoPrimary(areAway: boolean): void {
    this.#lastAt("").is({ away: areAway });
  }

  /** @param key in a cluster, only the node that serves it counts. Default: any node */
  isAway(key?: string): boolean {
    const cluster = this.#cluster;
    if (!cluster) return this.#last?.isAway ?? false;
    // A node is not away while another one is silent: that one may be the primary.
    const nodes = new Set(
      cluster.nodes("all").map(({ options: { host, port } }) => `${host}:${port}`),
    );
    const all = [...this.#servers];
    if (all.some(([address, { isSilent }]) => isSilent && nodes.has(address))) return false;
    if (this.#allFailed || this.#isDown) return true;
    if (key === undefined) return all.some(([, { isAway }]) => isAway);
    const [address = ""] = cluster.slots[slotOf(key)] ?? [];
    return this.#servers.get(address)?.isAway ?? areAllAway(this.#servers.values());
  }

  /**
   * Called when the cluster reports that it is down: it counts as down until the client is ready
   * again. @returns whether the store is away
   */
  onDown(): boolean {
    this.#isDown = true;
    return this.#cluster === undefined || this.isAway();
  }

  /** Follows the client of these connections too. */
  of(client: Redis | Cluster): this {
    links.set(client, this);
    if (!isCluster(client)) return this;
    this.#cluster = client;
    client.on("ready", () => {
      this.#tried.clear();
      this.#allFailed = false;
      this.#isDown = false;
    });
    // No node tells who serves which slots.
    client.on("error", (error: Error & { lastNodeError?: Error }) => {
      if (error.lastNodeError) this.#allFailed = areAllAway(this.#tried);
    });
    return this;
  }

  #lastAt(address: string): Server {
    const server = this.#servers.get(address) ?? new Server();
    this.#servers.set(address, server);
    this.#tried.add(server);
    this.#last = server;
    return server;
  }
}

function areAllAway(servers: Iterable<Server>): boolean {
  const all = [...servers];
  return all.length > 0 && all.every(({ isAway }) => isAway);
}

const addresses = new WeakMap<object, ServerAddress>();

/** The server that a connection leads to. */
export function addressOf(connection: unknown): ServerAddress | undefined {
  return addresses.get(connection as object);
}

const links = new WeakMap<object, Link>();

/** The link of a client. */
export function linkOf(client: Redis | Cluster): Link {
  return links.get(client) ?? new Link().of(client);
}

/** Whether a connection failed because nobody is there: it was refused, closed or could not be made. */
export function isGone(error: unknown): boolean {
  // A host may have several addresses, not all of which this machine can use.
  const failures: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
  return failures.some((failure) => gone.test(systemCode(failure) ?? ""));
}

/** Not those of TLS, nor of this machine, such as too many open files. */
const gone =
  /^(ECONN(REFUSED|RESET|ABORTED)|EPIPE|ENOTFOUND|EAI_[A-Z]+|E(HOST|NET)(UNREACH|DOWN))$/;

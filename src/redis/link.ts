import slotOf from "cluster-key-slot";
import type { Cluster, Redis } from "ioredis";
import { oncePer } from "../collections/once-per.ts";

/** What a client's connections have shown about the store so far. */
export interface Link {
  /**
   * Whether the store is away: the last connection was refused, could not be made, or was closed by
   * the server before it sent anything, or no Sentinel can be reached. A store that accepts
   * connections and then stays silent is not away, however long: it may still serve other clients.
   * @param key in a cluster, only the node that serves it counts. Default: any node
   */
  isAway(key?: string): boolean;
  /**
   * Called when the cluster reports that it is down: it counts as down until the client is ready
   * again.
   */
  onClusterDown?(): void;
}

/** Without loading the driver, which only a gateway with Redis needs. */
export function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster;
}

/**
 * The connection that commands take now, to compare it with a later one. Undefined for a cluster,
 * which has many.
 */
export function connectionOf(client: Redis | Cluster): object | undefined {
  return isCluster(client) ? undefined : client.stream;
}

/**
 * Returns the link of a client. It follows the client's connections from the first call on: best
 * called right after the client was made.
 */
export const linkOf = oncePer(
  (client: Redis | Cluster): Link =>
    isCluster(client) ? clusterLink(client) : connectionLink(client),
);

/** A server that takes longer to close an accepted connection counts as silent, not as away. */
const silentMs = 500;

function connectionLink(client: Redis): Link & { isSilent(): boolean } {
  let state: "unknown" | "ready" | "silent" | "away" = "unknown";
  let acceptedMs: number | undefined;
  // Whether the client closed the connection itself: that says nothing about the server.
  let closedHere = false;
  client.on("connecting", () => {
    acceptedMs = undefined;
    closedHere = false;
  });
  client.on("connect", () => {
    acceptedMs = performance.now();
    state = "silent";
  });
  client.on("ready", () => {
    state = "ready";
  });
  client.on("error", (error: Error) => {
    if (error.message.startsWith("All sentinels are unreachable")) {
      state = /timed? ?out/i.test(error.message) ? "silent" : "away";
    } else if (error.name === "ReplyError" || ownClosings.test(error.message)) {
      closedHere = true;
    }
  });
  client.on("close", () => {
    if (closedHere) return;
    // The next connection shows at once whether the store is back.
    if (state === "ready") state = "unknown";
    else if (acceptedMs === undefined) state = "away";
    else if (state === "silent" && performance.now() - acceptedMs < silentMs) state = "away";
  });
  return { isAway: () => state === "away", isSilent: () => state === "silent" };
}

/** The driver's errors when it closes a connection that was silent or answered an error. */
const ownClosings = /^(Socket timeout|Ready check failed)/;

/**
 * A cluster is away as soon as one of its nodes is, unless another one is silent: that one may be
 * the primary.
 */
function clusterLink(client: Cluster): Link {
  const nodes = new Map<Redis, ReturnType<typeof connectionLink>>();
  /** The last connection to each address: the driver drops a node that refuses it. */
  const byAddress = new Map<string, Link>();
  let allFailed = false;
  let isDown = false;
  const follow = (node: Redis) => {
    const link = connectionLink(node);
    nodes.set(node, link);
    byAddress.set(`${node.options.host}:${node.options.port}`, link);
  };
  client.nodes("all").forEach(follow);
  client.on("+node", follow);
  client.on("-node", (node: Redis) => void nodes.delete(node));
  client.on("ready", () => {
    allFailed = false;
    isDown = false;
  });
  client.on("error", (error: Error & { lastNodeError?: Error }) => {
    const { lastNodeError } = error;
    if (lastNodeError) allFailed = !/timed? ?out/i.test(lastNodeError.message);
  });
  return {
    isAway(key) {
      const all = [...nodes.values()];
      if (all.some((node) => node.isSilent())) return false;
      const [address] = key === undefined ? [] : (client.slots[slotOf(key)] ?? []);
      const serving = address === undefined ? undefined : byAddress.get(address);
      const areAway = serving ? serving.isAway() : all.some((node) => node.isAway());
      return allFailed || isDown || areAway;
    },
    onClusterDown() {
      isDown = true;
    },
  };
}

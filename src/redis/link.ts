import { Cluster, type Redis } from "ioredis";

/** What the connections of a client have shown of the store so far. */
export interface Link {
  /**
   * Whether the store is away: its last connection was refused, could not be made, or was closed by
   * the other side before a word, or there is no Sentinel that can be reached. A store that accepts
   * connections and is silent then is not away, however long: others may be served by it.
   */
  isAway(): boolean;
  /** Hears that the cluster says that it is down: it stays so until the client is ready again. */
  onClusterDown?(): void;
}

const links = new WeakMap<Redis | Cluster, Link>();

/** Follows a client's connections from the first call on: best right after it was made. */
export function linkOf(client: Redis | Cluster): Link {
  const known = links.get(client);
  if (known) return known;
  const link = client instanceof Cluster ? clusterLink(client) : connectionLink(client);
  links.set(client, link);
  return link;
}

/** A server that closes an accepted connection later than this was silent on it before. */
const silentMs = 500;

function connectionLink(client: Redis): Link & { isSilent(): boolean } {
  let state: "unknown" | "ready" | "silent" | "away" = "unknown";
  let acceptedMs: number | undefined;
  // The client closed the connection by itself: that says nothing about the server.
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
    // The next connection shows at once whether it is back.
    if (state === "ready") state = "unknown";
    else if (acceptedMs === undefined) state = "away";
    else if (state === "silent" && performance.now() - acceptedMs < silentMs) state = "away";
  });
  return { isAway: () => state === "away", isSilent: () => state === "silent" };
}

/** What the client says when it gives a connection up that was silent, or answered with an error. */
const ownClosings = /^(Socket timeout|Ready check failed)/;

/** Away as soon as one of its nodes is, unless another one is silent: that one may be the primary. */
function clusterLink(client: Cluster): Link {
  const nodes = new Map<Redis, ReturnType<typeof connectionLink>>();
  let allFailed = false;
  let isDown = false;
  const follow = (node: Redis) => void nodes.set(node, connectionLink(node));
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
    isAway() {
      const all = [...nodes.values()];
      if (all.some((node) => node.isSilent())) return false;
      return allFailed || isDown || all.some((node) => node.isAway());
    },
    onClusterDown() {
      isDown = true;
    },
  };
}

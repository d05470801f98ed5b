import { joinCluster } from "../../redis/cluster.ts";
import {
  masterPortOf,
  mostOf,
  setName,
  startSentinels as startWatching,
} from "../../redis/sentinel.ts";
import {
  freePort,
  inSync,
  type RedisServer,
  type Settings,
  startRedis,
} from "../../redis/server.ts";
import { until } from "../../until.ts";
import { type Link, startLink } from "./link.ts";

/** A server behind its link: all others connect to the link's port. */
export interface Node {
  readonly server: RedisServer;
  readonly link: Link;
  /** The cluster bus. */
  readonly bus?: Link;
}

/** Redis servers as a set, with a link before each port. */
export interface Topology {
  readonly kind: "alone" | "sentinel" | "cluster";
  readonly nodes: readonly Node[];
  readonly sentinels: readonly RedisServer[];
  /** REDIS_URL of one of the gateways. */
  urlOf(gateway: number): string;
  /** The link of one gateway to one Sentinel. */
  sentinelLink(gateway: number, sentinel: number): Link;
  /** The node that serves the gateways' account now, as most of the set see it. */
  primary(): Promise<Node>;
  /** Resumes or restarts every server, and opens every link. */
  mend(): Promise<void>;
  close(): Promise<void>;
}

export const gateways = [0, 1, 2] as const;
/** In a cluster, the node that owns this key counts as the primary. */
export const logKey = "rig:{default}:log";

const durable: Settings = [
  ["appendonly", "yes"],
  ["appendfsync", "always"],
  ["repl-diskless-sync-delay", "0"],
  ["repl-timeout", "5"],
  ["repl-ping-replica-period", "1"],
  ...gateways.map((n) => ["user", `gateway-${n} on nopass ~* &* +@all`] as [string, string]),
];
const userOf = (gateway: number) => `gateway-${gateway}:x@`;

async function startNode(settings: Settings = []): Promise<Node> {
  let port = 0;
  const link = await startLink(() => port);
  const announced: Settings = ["replica", "cluster"].flatMap((by): [string, string][] => [
    [`${by}-announce-ip`, "127.0.0.1"],
    [`${by}-announce-port`, `${link.port}`],
  ]);
  const server = await startRedis([...durable, ...announced, ...settings]);
  port = server.port;
  return { server, link };
}

/** What all topologies have in common. */
function whole(nodes: readonly Node[], sentinels: readonly RedisServer[], links: readonly Link[]) {
  const servers = [...nodes.map(({ server }) => server), ...sentinels];
  return {
    async mend() {
      for (const link of links) link.set("open");
      for (const server of servers) server.resume();
      await Promise.all(
        servers.map(async (server) => {
          if (!server.isRunning) await server.start();
        }),
      );
    },
    async close() {
      await Promise.all(servers.map((server) => server.close()));
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

export async function startAlone(): Promise<Topology> {
  const node = await startNode();
  return {
    kind: "alone",
    nodes: [node],
    sentinels: [],
    urlOf: (gateway) => `redis://${userOf(gateway)}127.0.0.1:${node.link.port}`,
    sentinelLink: () => node.link,
    primary: async () => node,
    ...whole([node], [], [node.link]),
  };
}

/**
 * A primary with two replicas, and three Sentinels, which each gateway reaches over links of its
 * own.
 */
export async function startSentinels(): Promise<Topology> {
  const primary = await startNode();
  const replicaof: [string, string] = ["replicaof", `127.0.0.1 ${primary.link.port}`];
  const replicas = await Promise.all([startNode([replicaof]), startNode([replicaof])]);
  await Promise.all(replicas.map(({ server }) => inSync(server)));
  const nodes = [primary, ...replicas];
  const sentinels = await startWatching(primary.link.port, { downAfterMs: 1_000 });
  const sentinelLinks = await Promise.all(
    gateways.map(() => Promise.all(sentinels.map(({ port }) => startLink(() => port)))),
  );
  const sentinelLink = (gateway: number, sentinel: number) =>
    sentinelLinks[gateway]?.[sentinel] as Link;
  return {
    kind: "sentinel",
    nodes,
    sentinels,
    urlOf(gateway) {
      const hosts = sentinels.map((_, at) => `127.0.0.1:${sentinelLink(gateway, at).port}`);
      return `redis+sentinel://${userOf(gateway)}${hosts.join(",")}/${setName}`;
    },
    sentinelLink,
    async primary() {
      const port = await masterPortOf(sentinels);
      return nodes.find(({ link }) => link.port === port) ?? primary;
    },
    ...whole(nodes, sentinels, [...nodes.map(({ link }) => link), ...sentinelLinks.flat()]),
  };
}

/** Three primaries with a replica each. */
export async function startClusterOfSix(): Promise<Topology> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const busPort = await freePort();
      const bus = await startLink(() => busPort);
      const node = await startNode([
        ["cluster-enabled", "yes"],
        ["cluster-port", `${busPort}`],
        ["cluster-node-timeout", "1500"],
        ["cluster-announce-bus-port", `${bus.port}`],
      ]);
      return { ...node, bus };
    }),
  );
  const [first] = nodes;
  const members = nodes.map(({ server, link, bus }) => ({
    ...{ server, port: link.port, busPort: bus.port },
  }));
  await joinCluster(members, 3);
  const links = nodes.flatMap(({ link, bus }) => [link, bus]);
  const slot = Number(await first?.server.command("CLUSTER", "KEYSLOT", logKey));
  return {
    kind: "cluster",
    nodes,
    sentinels: [],
    urlOf: (gateway) =>
      nodes.map(({ link }) => `redis://${userOf(gateway)}127.0.0.1:${link.port}`).join(","),
    sentinelLink: () => nodes[0]?.link as Link,
    async primary() {
      const named = await Promise.all(
        nodes
          .filter(({ server }) => server.isRunning && !server.isPaused)
          .map(async ({ server }) => {
            const shares = (await server.command("CLUSTER", "SLOTS")) as [
              number,
              number,
              [string, number],
            ][];
            return shares.find(([from, to]) => from <= slot && slot <= to)?.[2][1] ?? 0;
          }),
      );
      return nodes.find(({ link }) => link.port === mostOf(named)) as Node;
    },
    ...whole(nodes, [], links),
  };
}

/** The replicas of the primary. */
export async function replicasOf(topology: Topology): Promise<Node[]> {
  const primary = await topology.primary();
  const [, , replicas] = (await primary.server.command("ROLE")) as [
    string,
    number,
    [string, string, string][],
  ];
  const ports = replicas.map(([, port]) => Number(port));
  return topology.nodes.filter(({ link }) => ports.includes(link.port));
}

/** Waits until all replicas follow the primary, so that the set survives the next fault. */
export async function untilWhole(topology: Topology): Promise<void> {
  const replicas = { alone: 0, sentinel: 2, cluster: 1 }[topology.kind];
  await until(async () => (await replicasOf(topology)).length === replicas);
}

import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandOn, freePort, type RedisServer, startRedis } from "../../redis/server.ts";
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
const setName = "payments";
/** In a cluster, the node that owns this key counts as the primary. */
const logKey = "rig:{default}:log";

const durable: [string, string][] = [
  ["appendonly", "yes"],
  ["repl-diskless-sync-delay", "0"],
  ["repl-timeout", "5"],
  ["repl-ping-replica-period", "1"],
  ...gateways.map((n): [string, string] => ["user", `gateway-${n} on nopass ~* &* +@all`]),
];
const userOf = (gateway: number) => `gateway-${gateway}:x@`;

async function startNode(settings: [string, string][] = []): Promise<Node> {
  let port = 0;
  const link = await startLink(() => port);
  const announced: [string, string][] = [
    ["replica-announce-ip", "127.0.0.1"],
    ["replica-announce-port", `${link.port}`],
  ];
  const server = await startRedis([...durable, ...announced, ...settings]);
  port = server.port;
  return { server, link };
}

async function inSync({ server }: Node): Promise<void> {
  await until(async () =>
    String(await server.command("INFO", "replication")).includes("master_link_status:up"),
  );
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
  await Promise.all(replicas.map(inSync));
  const nodes = [primary, ...replicas];
  const sentinels = await Promise.all(
    [0, 1, 2].map(() =>
      startRedis([], async (dir, port) => {
        const file = join(dir, "sentinel.conf");
        const lines = [
          `port ${port}`,
          "bind 127.0.0.1",
          `dir ${dir}`,
          `logfile ${join(dir, "redis.log")}`,
          `sentinel monitor ${setName} 127.0.0.1 ${primary.link.port} 2`,
          `sentinel down-after-milliseconds ${setName} 1000`,
          `sentinel failover-timeout ${setName} 3000`,
          `sentinel parallel-syncs ${setName} 2`,
        ];
        await writeFile(file, `${lines.join("\n")}\n`);
        return [file, "--sentinel"];
      }),
    ),
  );
  const ask = (port: number, question: string) => commandOn(port, "SENTINEL", question, setName);
  for (const { port } of sentinels) {
    await until(async () => {
      const told = ((await ask(port, "MASTER")) as string[]).join(" ");
      return /num-other-sentinels 2\b/.test(told) && /num-slaves 2\b/.test(told);
    });
  }
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
      const named = await Promise.all(
        sentinels
          .filter((sentinel) => sentinel.isRunning && !sentinel.isPaused)
          .map(async ({ port }) => {
            const [, at] = (await ask(port, "GET-MASTER-ADDR-BY-NAME")) as [string, string];
            return Number(at);
          }),
      );
      const [most] = [...named].sort((a, b) => count(named, b) - count(named, a));
      return nodes.find(({ link }) => link.port === most) ?? primary;
    },
    ...whole(nodes, sentinels, [...nodes.map(({ link }) => link), ...sentinelLinks.flat()]),
  };
}

const count = (all: readonly number[], one: number) => all.filter((each) => each === one).length;

/** Three primaries with a replica each. */
export async function startClusterOfSix(): Promise<Topology> {
  const nodes = await Promise.all(
    Array.from({ length: 6 }, async () => {
      const busPort = await freePort();
      const bus = await startLink(() => busPort);
      let port = 0;
      const link = await startLink(() => port);
      const server = await startRedis([
        ...durable,
        ["replica-announce-ip", "127.0.0.1"],
        ["replica-announce-port", `${link.port}`],
        ["cluster-enabled", "yes"],
        ["cluster-port", `${busPort}`],
        ["cluster-node-timeout", "1500"],
        ["cluster-announce-ip", "127.0.0.1"],
        ["cluster-announce-port", `${link.port}`],
        ["cluster-announce-bus-port", `${bus.port}`],
      ]);
      port = server.port;
      return { server, link, bus };
    }),
  );
  const [first] = nodes;
  for (const { link, bus } of nodes.slice(1)) {
    await first?.server.command("CLUSTER", "MEET", "127.0.0.1", link.port, bus.port);
  }
  const share = Math.ceil(16_384 / 3);
  const ids: string[] = [];
  for (const at of [0, 1, 2]) {
    const server = nodes[at]?.server as RedisServer;
    const last = Math.min((at + 1) * share, 16_384) - 1;
    await server.command("CLUSTER", "ADDSLOTSRANGE", at * share, last);
    ids.push(String(await server.command("CLUSTER", "MYID")));
  }
  for (const at of [3, 4, 5]) {
    const replica = nodes[at] as Node;
    await until(
      async () =>
        (await replica.server.command("CLUSTER", "REPLICATE", ids[at - 3] ?? "")) === "OK",
    );
    await inSync(replica);
  }
  for (const { server } of nodes) {
    await until(async () => {
      const info = String(await server.command("CLUSTER", "INFO"));
      const known = String(await server.command("CLUSTER", "NODES"));
      return info.includes("cluster_state:ok") && known.match(/slave/g)?.length === 3;
    });
  }
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
      const [most] = [...named].sort((a, b) => count(named, b) - count(named, a));
      return nodes.find(({ link }) => link.port === most) as Node;
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

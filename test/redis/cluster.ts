import { until } from "../until.ts";
import { commandOn, freePort, inSync, type RedisServer, startRedis } from "./server.ts";

/** A cluster of masters without replicas, all on 127.0.0.1. */
export interface RedisCluster {
  /** A comma-separated list of the nodes, as `REDIS_URL` takes it. */
  readonly url: string;
  readonly nodes: readonly RedisServer[];
  close(): Promise<void>;
}

const slots = 16_384;

/** Starts a cluster of `size` masters and waits until each of them reports all as ok. */
export async function startCluster(
  size = 3,
  settings: readonly [string, string][] = [],
): Promise<RedisCluster> {
  const busPorts = await Promise.all(Array.from({ length: size }, freePort));
  const nodes = await Promise.all(
    busPorts.map((busPort) => startRedis([...nodeSettings(busPort), ...settings])),
  );
  const share = Math.ceil(slots / size);
  for (const [at, node] of nodes.entries()) {
    const last = Math.min((at + 1) * share, slots) - 1;
    await node.command("CLUSTER", "ADDSLOTSRANGE", at * share, last);
    for (const [other, { port }] of nodes.entries()) {
      if (other === at) continue;
      await node.command("CLUSTER", "MEET", "127.0.0.1", port, busPorts[other] ?? 0);
    }
  }
  for (const { port } of nodes) {
    await until(async () => {
      const info = String(await commandOn(port, "CLUSTER", "INFO"));
      return info.includes("cluster_state:ok") && info.includes(`cluster_known_nodes:${size}`);
    });
  }
  return {
    url: nodes.map(({ url }) => url).join(","),
    nodes,
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

/** The number of the node that has a key. */
export async function ownerOf({ nodes }: RedisCluster, key: string): Promise<number> {
  const slot = Number(await nodes[0]?.command("CLUSTER", "KEYSLOT", key));
  return Math.floor(slot / Math.ceil(slots / nodes.length));
}

/** Adds a replica of a node, and waits until it is in sync and all masters know it. */
export async function addReplica(cluster: RedisCluster, of: number): Promise<RedisServer> {
  const master = cluster.nodes[of];
  if (!master) throw new Error(`the cluster has no node ${of}`);
  const busPort = await freePort();
  const replica = await startRedis(nodeSettings(busPort));
  const known = String(await master.command("CLUSTER", "MYID"));
  const shards = String(await master.command("CLUSTER", "NODES"));
  const masterBus = Number(new RegExp(`^${known} [^@]*@(\\d+)`, "m").exec(shards)?.[1]);
  await replica.command("CLUSTER", "MEET", "127.0.0.1", master.port, masterBus);
  await until(async () => (await replica.command("CLUSTER", "REPLICATE", known)) === "OK");
  await inSync(replica);
  for (const { port } of cluster.nodes) {
    await until(async () =>
      String(await commandOn(port, "CLUSTER", "NODES")).includes(`slave ${known}`),
    );
  }
  return replica;
}

function nodeSettings(busPort: number): [string, string][] {
  return [
    ["cluster-enabled", "yes"],
    ["cluster-port", `${busPort}`],
    ["cluster-node-timeout", "2000"],
    ["repl-diskless-sync-delay", "0"],
  ];
}

import assert from "node:assert/strict";
import { until } from "../until.ts";
import { freePort, inSync, type RedisServer, type Settings, startRedis } from "./server.ts";

/** A cluster of masters without replicas, all on 127.0.0.1. */
type RedisCluster = Awaited<ReturnType<typeof startCluster>>;

/** A server, and the ports at which the others reach it. */
interface ClusterNode {
  readonly server: RedisServer;
  readonly port: number;
  readonly busPort: number;
}

const slots = 16_384;

/** Starts a cluster of `size` masters and waits until each of them reports all as ok. */
export async function startCluster(size = 3, settings: Settings = []) {
  const members = await Promise.all(
    Array.from({ length: size }, async (): Promise<ClusterNode> => {
      const busPort = await freePort();
      const server = await startRedis([...nodeSettings(busPort), ...settings]);
      return { server, port: server.port, busPort };
    }),
  );
  await joinCluster(members, size);
  const nodes = members.map(({ server }) => server);
  return {
    /** As `REDIS_URL` takes it. */
    url: nodes.map(({ url }) => url).join(","),
    nodes,
    async close() {
      await Promise.all(nodes.map((node) => node.close()));
    },
  };
}

/**
 * Joins nodes into a cluster, and waits until each of them knows that it works. The first ones are
 * the masters, and share the slots; of the others each replicates one of them.
 */
export async function joinCluster(nodes: readonly ClusterNode[], masters: number): Promise<void> {
  for (const { server } of nodes) {
    for (const { server: other, port, busPort } of nodes) {
      if (other !== server) await server.command("CLUSTER", "MEET", "127.0.0.1", port, busPort);
    }
  }
  const share = Math.ceil(slots / masters);
  const ids: string[] = [];
  for (const [at, { server }] of nodes.slice(0, masters).entries()) {
    const last = Math.min((at + 1) * share, slots) - 1;
    await server.command("CLUSTER", "ADDSLOTSRANGE", at * share, last);
    ids.push(String(await server.command("CLUSTER", "MYID")));
  }
  for (const [at, { server }] of nodes.slice(masters).entries()) {
    await replicate(server, ids[at % masters] ?? "");
  }
  for (const { server } of nodes) {
    await until(async () => {
      const info = String(await server.command("CLUSTER", "INFO"));
      const known = String(await server.command("CLUSTER", "NODES"));
      return (
        info.includes("cluster_state:ok") &&
        info.includes(`cluster_known_nodes:${nodes.length}`) &&
        (known.match(/slave/g) ?? []).length === nodes.length - masters
      );
    });
  }
}

/** The number of the node that has a key. */
export async function ownerOf({ nodes }: RedisCluster, key: string): Promise<number> {
  const slot = Number(await nodes[0]?.command("CLUSTER", "KEYSLOT", key));
  return Math.floor(slot / Math.ceil(slots / nodes.length));
}

/** Gives the slot of a key, which must be empty, to another node. */
export async function moveSlot(cluster: RedisCluster, key: string): Promise<void> {
  const { nodes } = cluster;
  const slot = Number(await nodes[0]?.command("CLUSTER", "KEYSLOT", key));
  const next = nodes[((await ownerOf(cluster, key)) + 1) % nodes.length];
  const id = String(await next?.command("CLUSTER", "MYID"));
  // The new owner first: it tells the others, by an epoch of its own.
  const others = nodes.filter((node) => node !== next);
  for (const node of [next, ...others]) {
    assert.equal(await node?.command("CLUSTER", "SETSLOT", slot, "NODE", id), "OK");
  }
}

/** Adds a replica of a node, and waits until it is in sync and all masters know it. */
export async function addReplica(cluster: RedisCluster, of: number): Promise<RedisServer> {
  const master = cluster.nodes[of];
  if (!master) throw new Error(`the cluster has no node ${of}`);
  const busPort = await freePort();
  const replica = await startRedis(nodeSettings(busPort));
  const known = String(await master.command("CLUSTER", "MYID"));
  await master.command("CLUSTER", "MEET", "127.0.0.1", replica.port, busPort);
  await replicate(replica, known);
  for (const node of cluster.nodes) {
    await until(async () =>
      String(await node.command("CLUSTER", "NODES")).includes(`slave ${known}`),
    );
  }
  return replica;
}

/** Makes a node replicate another one, once it knows that one, and waits until it is in sync. */
async function replicate(replica: RedisServer, id: string): Promise<void> {
  await until(async () => (await replica.command("CLUSTER", "REPLICATE", id)) === "OK");
  await inSync(replica);
}

function nodeSettings(busPort: number): Settings {
  return [
    ["cluster-enabled", "yes"],
    ["cluster-port", `${busPort}`],
    ["cluster-node-timeout", "2000"],
    ["repl-diskless-sync-delay", "0"],
  ];
}

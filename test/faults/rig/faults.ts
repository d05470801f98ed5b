import { setTimeout as delay } from "node:timers/promises";
import type { MoneyUpstream } from "../../gateway/money-upstream.ts";
import { until } from "../../until.ts";
import type { Gateway } from "./gateways.ts";
import { clients, type LinkMode, others, type Party } from "./link.ts";
import { logKey, type Node, replicasOf, type Topology } from "./topologies.ts";

/** What runs beside Redis. */
export interface Beside {
  readonly gateways: readonly Gateway[];
  readonly upstream: MoneyUpstream;
}

/** Makes something go wrong, most of it with Redis; `topology.mend()` ends the fault. */
export type Fault = (topology: Topology, random: () => number, beside: Beside) => Promise<void>;

/** Sets the primary's link to `mode` for these parties, for `ms`. */
const link =
  (mode: LinkMode, parties: readonly Party[], ms = 2_500): Fault =>
  async (topology) => {
    const { link } = await topology.primary();
    link.set(mode, parties);
    await delay(ms);
    link.set("open", parties);
  };
/** The same with the cluster bus of the primary, for all. */
const bus =
  (mode: LinkMode): Fault =>
  async (topology) => {
    const { bus } = await topology.primary();
    bus?.set(mode);
    await delay(5_000);
    bus?.set("open");
  };
const kill: Fault = async (topology) => (await topology.primary()).server.kill();
const freeze =
  (
    ms: number,
    nodeOf = (topology: Topology): Promise<Node | undefined> => topology.primary(),
  ): Fault =>
  async (topology) => {
    const node = await nodeOf(topology);
    node?.server.pause();
    await delay(ms);
    node?.server.resume();
  };
const aReplica = async (topology: Topology) => (await replicasOf(topology))[0];
/** Asks again while it is refused: on a busy machine no replica is known or fit for a moment. */
const failOver: Fault = async (topology) => {
  await until(async () => {
    if (topology.kind === "sentinel") {
      const asked = topology.sentinels[0]?.command("SENTINEL", "FAILOVER", "payments");
      // The Sentinels may have begun one by themselves.
      return asked?.catch((error: Error) => {
        if (!error.message.startsWith("INPROG")) throw error;
        return true;
      });
    }
    const [replica] = await replicasOf(topology);
    return replica?.server.command("CLUSTER", "FAILOVER");
  });
};
const killReplica: Fault = async (topology) => (await aReplica(topology))?.server.kill();
const killAndRestart: Fault = async (topology) => {
  const { server } = await topology.primary();
  await server.kill();
  await delay(300);
  await server.start();
};

/** Servers forget the scripts, as one that was just promoted does not know them. */
const flushScripts: Fault = async ({ nodes }, random) => {
  for (let round = 0; round < 10; round++) {
    for (const { server } of nodes) await server.command("SCRIPT", "FLUSH");
    await delay(random() * 300);
  }
};

/** The servers refuse the password of one gateway, which must not take them for away. */
const refuse: Fault = async ({ nodes }) => {
  for (const { server } of nodes) {
    await server.command("ACL", "SETUSER", "gateway-1", "off");
    await server.command("CLIENT", "KILL", "USER", "gateway-1");
  }
  await delay(3_000);
  for (const { server } of nodes) await server.command("ACL", "SETUSER", "gateway-1", "on");
};

/** An operator moves the slot of the account, key by key, to another primary of the cluster. */
const moveSlot: Fault = async (topology) => {
  const from = await topology.primary();
  const slot = Number(await from.server.command("CLUSTER", "KEYSLOT", logKey));
  const primaries: Node[] = [];
  for (const node of topology.nodes) {
    const [role] = (await node.server.command("ROLE")) as [string];
    if (role === "master") primaries.push(node);
  }
  const to = primaries.find((node) => node !== from) as Node;
  const idOf = async ({ server }: Node) => String(await server.command("CLUSTER", "MYID"));
  await to.server.command("CLUSTER", "SETSLOT", slot, "IMPORTING", await idOf(from));
  await from.server.command("CLUSTER", "SETSLOT", slot, "MIGRATING", await idOf(to));
  for (;;) {
    const keys = await from.server.command("CLUSTER", "GETKEYSINSLOT", slot, 50);
    if ((keys as string[]).length === 0) break;
    const place = ["127.0.0.1", to.server.port, "", 0, 5_000] as const;
    await from.server.command("MIGRATE", ...place, "KEYS", ...(keys as string[]));
    await delay(20);
  }
  // The new owner first: it tells the others, by an epoch of its own.
  for (const { server } of [to, from, ...primaries]) {
    await server.command("CLUSTER", "SETSLOT", slot, "NODE", await idOf(to));
  }
};

/** One gateway dies while some of its calls wait for the service, and another one starts in its place. */
const killGateway: Fault = async (_, random, { gateways, upstream }) => {
  const answer = upstream.hold();
  const sent = upstream.requests.length;
  await until(() => upstream.requests.length >= sent + 2 * gateways.length);
  const victim = gateways[Math.floor(random() * gateways.length)];
  await victim?.kill();
  answer();
  await victim?.restart();
};

/** Faults of a single Redis. */
const alone: Readonly<Record<string, Fault>> = {
  "primary killed and restarted": killAndRestart,
  "primary frozen for 3 s": freeze(3_000),
  "primary frozen for 1 s": freeze(1_000),
  "all gateways cut off": link("cut", clients),
  "all gateways stalled": link("stalled", clients),
  "all links half-open": link("half-open", clients),
  "one gateway cut off": link("cut", ["gateway-0"]),
  "one gateway stalled": link("stalled", ["gateway-1"]),
  "one gateway half-open": link("half-open", ["gateway-2"]),
  "cut again and again": async (...given) => {
    for (let round = 0; round < 8; round++) await link("cut", clients, 150)(...given);
  },
  "connections closed by the server": async (topology, random) => {
    const { server } = await topology.primary();
    for (let round = 0; round < 10; round++) {
      await server.command("CLIENT", "KILL", "TYPE", "normal").catch(() => {});
      await server.command("CLIENT", "KILL", "TYPE", "pubsub").catch(() => {});
      await delay(random() * 300);
    }
  },
  "out of memory": async (topology) => {
    const { server } = await topology.primary();
    await server.command("CONFIG", "SET", "maxmemory", "1");
    await delay(2_000);
    await server.command("CONFIG", "SET", "maxmemory", "0");
  },
  "a gateway killed": killGateway,
  "scripts flushed again and again": flushScripts,
  "one gateway refused": refuse,
};

/** Faults of sets with replicas. */
const replicated: Readonly<Record<string, Fault>> = {
  "failover asked for": failOver,
  "failover asked for twice": async (...given) => {
    await failOver(...given);
    await delay(1_500);
    await failOver(...given);
  },
  "primary killed": kill,
  "primary frozen for 3 s": freeze(3_000),
  "primary killed and restarted": killAndRestart,
  "replica killed": killReplica,
  "replica frozen for 3 s": freeze(3_000, aReplica),
  "replication cut": link("cut", ["peer"]),
  "replication stalled": link("stalled", ["peer"]),
  "replication half-open": link("half-open", ["peer"]),
  "all gateways cut off": link("cut", clients),
  "all gateways stalled": link("stalled", clients),
  "one gateway half-open": link("half-open", ["gateway-2"]),
  "replica killed, then the primary": async (topology, ...given) => {
    await killReplica(topology, ...given);
    await delay(3_000);
    await topology.mend();
    await delay(3_000);
    await kill(topology, ...given);
  },
  "scripts flushed again and again": flushScripts,
  "one gateway refused": refuse,
};

const sentinel: Readonly<Record<string, Fault>> = {
  ...replicated,
  "primary killed, a Sentinel frozen": async (topology, ...given) => {
    topology.sentinels[2]?.pause();
    await kill(topology, ...given);
  },
  "old primary cut off from all but gateways": link("cut", others, 6_000),
  "one gateway cut off from Sentinels": async (topology, ...given) => {
    for (const at of [0, 1, 2]) topology.sentinelLink(0, at).set("cut");
    await failOver(topology, ...given);
  },
  "Sentinels half-open for one gateway": async (topology, ...given) => {
    for (const at of [0, 1, 2]) topology.sentinelLink(1, at).set("half-open");
    await kill(topology, ...given);
  },
};

const cluster: Readonly<Record<string, Fault>> = {
  ...replicated,
  "bus of the primary cut": bus("cut"),
  "bus of the primary stalled": bus("stalled"),
  "failover forced": async (topology) => {
    await until(async () => {
      const [replica] = await replicasOf(topology);
      return replica?.server.command("CLUSTER", "FAILOVER", "FORCE");
    });
  },
  "old primary cut off from all but gateways": async (topology) => {
    const { link: own, bus } = await topology.primary();
    own.set("cut", others);
    bus?.set("cut");
    await delay(5_000);
  },
  "slot moved": moveSlot,
};

/** Faults by topology and name. */
export const faults: Readonly<Record<Topology["kind"], Readonly<Record<string, Fault>>>> = {
  alone,
  sentinel,
  cluster,
};

import { serveBefore } from "../../gateway/serving.ts";
import { killSpawned } from "../../gateway/spawn.ts";
import { freePort } from "../../redis/server.ts";
import { gateways, type Topology } from "./topologies.ts";

// No gateway outlives the tests, even if they end early.
for (const end of ["exit", "SIGTERM", "SIGINT"]) process.once(end, killSpawned);

/** A gateway as a process of its own. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/** FAULT_MIN_REPLICAS=1 shows what the rig finds where not all replicas have to hold a write. */
const minReplicas = process.env.FAULT_MIN_REPLICAS;

async function startGateway(topology: Topology, upstreamUrl: string, gateway: number) {
  const ports = await Promise.all([freePort(), freePort(), freePort()]);
  const [PUBLIC_ADDR = "", RPC_ADDR = "", ADMIN_ADDR = ""] = ports.map((n) => `127.0.0.1:${n}`);
  const start = () =>
    serveBefore(upstreamUrl, {
      ...{ PUBLIC_ADDR, RPC_ADDR, ADMIN_ADDR },
      UPSTREAM_TIMEOUT: "2s",
      RATE_LIMIT_INITIAL: "1000",
      RATE_LIMIT_MAX_WAIT: "1s",
      RECONCILE_AFTER: "1s",
      REDIS_URL: topology.urlOf(gateway),
      REDIS_PREFIX: "rig",
      ...(minReplicas !== undefined && { REDIS_MIN_REPLICAS: minReplicas }),
    });
  const running = {
    ...(await start()),
    name: `gateway-${gateway}`,
    /** Starts another process in place of one that was killed, at its addresses. */
    async restart() {
      const { spawned, kill } = await start();
      Object.assign(running, { spawned, kill });
    },
  };
  return running;
}

export function startGateways(topology: Topology, upstreamUrl: string): Promise<Gateway[]> {
  return Promise.all(gateways.map((gateway) => startGateway(topology, upstreamUrl, gateway)));
}

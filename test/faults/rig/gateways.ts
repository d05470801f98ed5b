import { serveBefore } from "../../gateway/serving.ts";
import { killSpawned } from "../../gateway/spawn.ts";
import { gateways, type Topology } from "./topologies.ts";

// No gateway outlives the tests, even if they end early.
for (const end of ["exit", "SIGTERM", "SIGINT"]) process.once(end, killSpawned);

/** A gateway as a process of its own. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/** FAULT_MIN_REPLICAS=1 shows what the rig finds where not all replicas have to hold a write. */
const minReplicas = process.env.FAULT_MIN_REPLICAS;

async function startGateway(topology: Topology, upstreamUrl: string, gateway: number) {
  const serving = await serveBefore(upstreamUrl, {
    UPSTREAM_TIMEOUT: "2s",
    RATE_LIMIT_INITIAL: "1000",
    RATE_LIMIT_MAX_WAIT: "1s",
    RECONCILE_AFTER: "1s",
    REDIS_URL: topology.urlOf(gateway),
    REDIS_PREFIX: "rig",
    ...(minReplicas !== undefined && { REDIS_MIN_REPLICAS: minReplicas }),
  });
  return { ...serving, name: `gateway-${gateway}` };
}

export function startGateways(topology: Topology, upstreamUrl: string): Promise<Gateway[]> {
  return Promise.all(gateways.map((gateway) => startGateway(topology, upstreamUrl, gateway)));
}

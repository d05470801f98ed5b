import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { EventService } from "../../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../../src/gen/payments/v1/payment_service_pb.ts";
import { freePorts, killSpawned, spawnCli } from "../../gateway/spawn.ts";
import { gateways, type Topology } from "./topologies.ts";

export const password = "password";

// No gateway outlives the tests, even if they end early.
for (const end of ["exit", "SIGTERM", "SIGINT"]) process.once(end, killSpawned);

/** A gateway as a process of its own. */
export type Gateway = Awaited<ReturnType<typeof startGateway>>;

/** FAULT_MIN_REPLICAS=1 shows what the rig finds where not all replicas have to hold a write. */
const minReplicas = process.env.FAULT_MIN_REPLICAS;

async function startGateway(topology: Topology, upstreamUrl: string, gateway: number) {
  const spawned = spawnCli(["serve"], {
    ...freePorts,
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: password,
    UPSTREAM_TIMEOUT: "2s",
    RATE_LIMIT_INITIAL: "1000",
    RATE_LIMIT_MAX_WAIT: "1s",
    RECONCILE_AFTER: "1s",
    AUTH_MODE: "none",
    LOG_LEVEL: "warn",
    REDIS_URL: topology.urlOf(gateway),
    REDIS_PREFIX: "rig",
    ...(minReplicas !== undefined && { REDIS_MIN_REPLICAS: minReplicas }),
  });
  const { rpc = "", public: publicUrl = "", admin = "" } = await spawned.ready;
  const transport = createConnectTransport({ baseUrl: rpc, httpVersion: "1.1" });
  return {
    name: `gateway-${gateway}`,
    spawned,
    publicUrl,
    admin,
    payments: createClient(PaymentService, transport),
    events: createClient(EventService, transport),
    async stop() {
      spawned.child.kill("SIGKILL");
      await spawned.exit;
    },
  };
}

export function startGateways(topology: Topology, upstreamUrl: string): Promise<Gateway[]> {
  return Promise.all(gateways.map((gateway) => startGateway(topology, upstreamUrl, gateway)));
}

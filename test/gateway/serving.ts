import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { clientOf } from "./callers.ts";
import { freePorts, spawnCli } from "./spawn.ts";

/** The password of the merchant `shop`, whose gateways `serveBefore` starts. */
export const password = "password";

export type Serving = Awaited<ReturnType<typeof serveBefore>>;

/** A gateway as a process of its own, in front of a payments service, once it is ready. */
export async function serveBefore(upstreamUrl: string, env: Record<string, string>) {
  const spawned = spawnCli(["serve"], {
    ...freePorts,
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: password,
    AUTH_MODE: "none",
    LOG_LEVEL: "warn",
    ...env,
  });
  const { rpc: rpcUrl = "", public: publicUrl = "", admin: adminUrl = "" } = await spawned.ready;
  return {
    ...{ spawned, rpcUrl, publicUrl, adminUrl },
    payments: clientOf(PaymentService, { rpcUrl }),
    events: clientOf(EventService, { rpcUrl }),
    async kill() {
      spawned.child.kill("SIGKILL");
      await spawned.exit;
    },
  };
}

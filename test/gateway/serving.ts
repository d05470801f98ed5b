import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { clientOf } from "./callers.ts";
import { spawnGateway } from "./spawn.ts";

/** The password of the merchant `shop`, whose gateways `serveBefore` starts. */
export const password = "password";

export type Serving = Awaited<ReturnType<typeof serveBefore>>;

/** A gateway as a process of its own, in front of a payments service, once it is ready. */
export async function serveBefore(upstreamUrl: string, env: Record<string, string>) {
  const gateway = await spawnGateway({
    UPSTREAM_URL: upstreamUrl,
    UPSTREAM_LOGIN: "shop",
    UPSTREAM_PASSWORD: password,
    AUTH_MODE: "none",
    LOG_LEVEL: "warn",
    ...env,
  });
  return {
    ...gateway,
    payments: clientOf(PaymentService, gateway),
    events: clientOf(EventService, gateway),
  };
}

import assert from "node:assert/strict";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { timeoutMs } from "../until.ts";
import { clientOf, hostedPayment, paymentTold, postCallback } from "./callers.ts";
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
  const payments = clientOf(PaymentService, gateway);
  return {
    ...gateway,
    payments,
    events: clientOf(EventService, gateway),
    /** Makes a payment, with an Idempotency-Key if one is given. */
    pay: (externalId: string, key?: string, amount?: string) =>
      payments.createPayment(
        hostedPayment(externalId, amount),
        key === undefined ? {} : { headers: { "idempotency-key": key } },
      ),
    /** The status of the answer to a callback. */
    async callback(externalId: string, status?: string): Promise<number> {
      const signal = AbortSignal.timeout(timeoutMs);
      const told = paymentTold(externalId, status);
      return (await postCallback(gateway, told, { password, signal })).status;
    },
    /** Stops it as an operator does, in order. */
    async stop() {
      gateway.spawned.child.kill("SIGTERM");
      assert.deepEqual(await gateway.spawned.exit, [0, null]);
    },
  };
}

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { after, before, describe, it, test } from "node:test";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentMethodType,
  PaymentOperation,
  PaymentState,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { startBefore } from "../start.ts";

/** Answers every payment with `is_success: true` and the `details` that its payload contains. */
const upstream = createServer(async (request, response) => {
  const { external_id, payload } = (await json(request)) as Record<string, string>;
  const details = JSON.parse(payload ?? "{}");
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ external_id, id: "id-1", is_success: true, details }));
});
let gateway: Gateway;
before(async () => {
  gateway = await startBefore(upstream, {
    AUTH_MODE: "none",
    WATCH_TOKEN_SECRET: "0123456789abcdef0123456789abcdef",
    RECONCILE_AFTER: "0",
  });
});
after(async () => {
  await gateway.stop();
});

describe("an answer whose status is not understood", () => {
  for (const [externalId, details] of [
    ["word", { payment_id: "p-1", status: "charged_back" }],
    ["number", { payment_id: "p-2", status: 5 }],
    ["list", []],
  ] as const) {
    it(`is PENDING despite is_success: ${JSON.stringify(details)}`, async () => {
      const { state, payment } = await pay(externalId, details);
      assert.equal(state, PaymentState.PENDING);
      assert.equal(payment?.isSuccess, true, "it is told as it came");

      const known = await rpc().getPayment({ externalId });
      assert.equal(known.state, PaymentState.PENDING);
      for await (const { event } of rpc().watchPayment({ externalId })) {
        assert.deepEqual([event?.final, event?.source], [false, EventSource.RESPONSE]);
        break;
      }
    });
  }

  it("differs from an answer without a status, whose state follows is_success", async () => {
    const { state } = await pay("none", { payment_id: "p-3" });
    assert.equal(state, PaymentState.PAID);
  });
});

test("an answer is of the operation that its call asked for if it names none", async () => {
  const externalId = "no operation";
  await pay(externalId, { payment_id: "p-4" });
  await rpc().confirmPayment({ externalId });
  await rpc().createRecurrentPayment({ externalId, recurrentId: "r-1", amount: "1.00" });
  const { operations } = await rpc().getPayment({ externalId });
  const { PAYMENT, CONFIRM, RECURRENT } = PaymentOperation;
  assert.deepEqual(
    operations.map(({ operation }) => operation),
    [PAYMENT, CONFIRM, RECURRENT],
  );
});

function rpc() {
  const baseUrl = gateway.rpcUrl;
  return createClient(PaymentService, createGrpcTransport({ baseUrl }));
}

function pay(externalId: string, details: object) {
  return rpc().createPayment({
    ...{ externalId, amount: "10.10", currency: "UAH", mode: PaymentMode.HOSTED },
    ...{ paymentMethod: { type: PaymentMethodType.CC_NUMBER }, payload: JSON.stringify(details) },
  });
}

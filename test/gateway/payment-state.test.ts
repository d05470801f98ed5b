import assert from "node:assert/strict";
import { test } from "node:test";
import type { DescEnum } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
  PaymentOperationSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";
import { clientOf, dataOf, paymentRequest, sendCallback } from "./callers.ts";
import { edges, watch } from "./watches.ts";

const gateway = ofSuite(() => startTestGateway({ PAYOUT_SUCCESS_STATUSES: "completed" }));

const rpc = () => clientOf(PaymentService, gateway);
const nameOf = (desc: DescEnum, value: number) => desc.value[value]?.localName ?? `${value}`;

/** The state from GetPayment, followed by the payment's operations. */
async function standing(externalId: string): Promise<string[]> {
  const { state, operations } = await rpc().getPayment({ externalId });
  return [
    nameOf(PaymentStateSchema, state),
    ...operations.map(({ operation, status, amount, at }) => {
      assert(at && at.seconds > 0n);
      const what = nameOf(PaymentOperationSchema, operation);
      return `${what} ${nameOf(PaymentStatusSchema, status)} ${amount}`;
    }),
  ];
}

/** Refunds a payment in the sandbox, as a merchant does on the service's site. */
async function refund(paymentId: string | undefined, amount?: number): Promise<void> {
  const response = await fetch(`${gateway.sandboxUrl}/sandbox/payments/${paymentId}/refund`, {
    method: "POST",
    headers: {
      authorization: `Basic ${btoa("sandbox:sandbox-password")}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ amount }),
  });
  assert.equal(response.status, 200, await response.text());
}

/** The states that a watch delivers, without repeats, up to `last`. */
async function statesUntil(last: string, ...watched: Parameters<typeof watch>): Promise<string[]> {
  const watching = watch(...watched);
  const seen = await watching.until(({ state }) => state === last);
  await watching.leave();
  return seen.map(({ state }) => state).filter((state, at) => state !== seen[at - 1]?.state);
}

test("a hold that is confirmed and refunded is AUTHORIZED, PAID, PARTIALLY_REFUNDED, REFUNDED", async () => {
  const externalId = "hold";
  const watched = edges.map((edge) => statesUntil("REFUNDED", edge, gateway, externalId));
  const made = await rpc().createPayment({ ...paymentRequest(externalId), confirm: false });
  assert.equal(nameOf(PaymentStateSchema, made.state), "AUTHORIZED");
  const paymentId = made.payment?.details?.paymentId;
  assert.deepEqual(await standing(externalId), ["AUTHORIZED", "PAYMENT SUCCESS 10.10"]);
  // The payment's callback does not change the state, but it must arrive before the next step.
  const behind = watch("gRPC", gateway, externalId, { after: made.cursor });
  assert.equal((await behind.next())?.state, "AUTHORIZED");
  await behind.leave();

  const confirmed = await rpc().confirmPayment({ externalId });
  assert.equal(nameOf(PaymentStateSchema, confirmed.state), "PAID");
  await refund(paymentId, 4);
  await statesUntil("PARTIALLY_REFUNDED", "gRPC", gateway, externalId);
  assert.deepEqual(await standing(externalId), [
    ...["PARTIALLY_REFUNDED", "PAYMENT SUCCESS 10.10", "CONFIRM SUCCESS 10.10"],
    "REFUND SUCCESS 4",
  ]);
  await refund(paymentId);
  const states = ["AUTHORIZED", "PAID", "PARTIALLY_REFUNDED", "REFUNDED"];
  for (const seen of await Promise.all(watched)) assert.deepEqual(seen, states);

  const { payment } = await dataOf(
    gateway,
    `{ payment(externalId: "${externalId}") { state cursor operations { operation status amount } } }`,
  );
  assert.equal(payment.cursor, (await rpc().getPayment({ externalId })).cursor);
  const operations = payment.operations.map((one: object) => Object.values(one).join(" "));
  assert.deepEqual([payment.state, ...operations], await standing(externalId));
});

test("a watch that is from the start and from a cursor, or from `earliest`, is refused", async () => {
  for (const wrong of [{ fromStart: true, afterCursor: "1" }, { afterCursor: "earliest" }]) {
    const next = rpc().watchPayment({ externalId: "from-start", ...wrong }, inTime());
    await assert.rejects(next[Symbol.asyncIterator]().next(), { code: Code.InvalidArgument });
  }
});

test("the state of a payout follows PAYOUT_SUCCESS_STATUSES", async () => {
  const payouts = clientOf(PayoutService, gateway);
  const externalId = "payout";
  const stateAfter = async (status: string) => {
    const told = { external_id: externalId, transaction_id: "tx-1", status };
    await sendCallback(gateway, told, { path: "default/payouts" });
    return (await payouts.getPayout({ externalId })).state;
  };
  // `success` is not in PAYOUT_SUCCESS_STATUSES.
  assert.equal(await stateAfter("success"), PayoutState.PENDING);
  assert.equal(await stateAfter("COMPLETED"), PayoutState.PAID);
  const { payout } = await dataOf(gateway, `{ payout(externalId: "${externalId}") { state } }`);
  assert.equal(payout.state, "PAID");
  const states: string[] = [];
  for await (const { event } of payouts.watchPayout({ externalId, untilFinal: true }, inTime())) {
    if (event) states.push(`${nameOf(PaymentStateSchema, event.state)} final=${event.final}`);
  }
  assert.deepEqual(states, ["PAID final=true"]);
});

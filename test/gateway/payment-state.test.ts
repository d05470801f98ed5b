import assert from "node:assert/strict";
import { test } from "node:test";
import { Code } from "@connectrpc/connect";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";
import { inTime } from "../until.ts";
import { clientOf, dataOf, sendCallback } from "./callers.ts";

const gateway = ofSuite(() => startTestGateway({ PAYOUT_SUCCESS_STATUSES: "completed" }));

test("a watch that is from the start and from a cursor, or from a word of the log's own, is refused", async () => {
  const payments = clientOf(PaymentService, gateway);
  const words = ["earliest", "latest"].map((afterCursor) => ({ afterCursor }));
  for (const wrong of [{ fromStart: true, afterCursor: "1" }, ...words]) {
    const next = payments.watchPayment({ externalId: "from-start", ...wrong }, inTime());
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
  const seen: unknown[] = [];
  for await (const { event } of payouts.watchPayout({ externalId, untilFinal: true }, inTime())) {
    seen.push([event?.state, event?.final]);
  }
  assert.deepEqual(seen, [[PaymentState.PAID, true]]);
});

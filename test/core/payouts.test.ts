import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSource, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { type Payout, PayoutSchema, PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  GetPayoutRequestSchema,
  RequestPayoutRequestSchema,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import { paymentEntry, payoutEntry } from "../../src/ledger/entry.ts";
import type { Intent } from "../../src/ledger/intents.ts";
import type { SendOptions } from "../../src/upstream/upstream.ts";
import { paymentRequest, payoutRequest } from "../gateway/callers.ts";
import { callBegun } from "../ledger/new-call.ts";
import { start } from "../rpc/start.ts";
import { account, callOf, coreBefore } from "./rig.ts";

const { PAYOUT } = EventKind;
const externalId = "payout-1";
const payout = (transactionId: string, status: string) =>
  create(PayoutSchema, { externalId, transactionId, status });
const notFound = new GatewayError("NOT_FOUND", "transaction_not_found");

/** A core whose payments service answers each look-up with `found`. */
function rig(found: Payout | GatewayError) {
  const getPayout = async () => {
    if (found instanceof GatewayError) throw found;
    return found;
  };
  const { core, log } = coreBefore({ getPayout, requestPayout: getPayout });
  const call = callOf(["payouts:read", "payouts:write"]);
  return {
    ...{ log, intents: log, core, call },
    look: () => core.getPayout(create(GetPayoutRequestSchema, { externalId }), call),
    async begin(): Promise<Intent> {
      const about = { method: "RequestPayout", kind: PAYOUT, externalId } as const;
      return await callBegun(log, account, about);
    },
    async tell(told: Payout) {
      const entry = payoutEntry(told, { source: EventSource.CALLBACK });
      assert.ok(entry);
      await log.append(account, entry);
    },
  };
}

test("a look-up has the signal and the deadline of its call", async () => {
  const given = Promise.withResolvers<SendOptions>();
  const { core } = coreBefore({
    async getPayout(_, options) {
      given.resolve(options);
      throw notFound;
    },
  });
  const { signal } = new AbortController();
  const call = callOf(["payouts:read"], { signal, deadlineMs: Date.now() + 60_000 });
  const looked = core.getPayout(create(GetPayoutRequestSchema, { externalId }), call);
  await assert.rejects(looked, { code: "NOT_FOUND" });
  const options = await given.promise;
  assert.equal(options.signal, signal);
  assert.equal(options.deadlineMs, call.deadlineMs);
});

test("a payout that the service does not find has an unknown outcome while a call is open", async () => {
  const { begin, intents, look } = rig(notFound);
  const intent = await begin();
  const { payout, outcomeUnknown } = await look();
  assert.deepEqual([payout, outcomeUnknown], [undefined, true]);
  await intents.end(account, intent, { state: "closed", key: "free" });
  await assert.rejects(look(), { code: "NOT_FOUND" });
});

test("a payout that the log has is returned when the service no longer finds it, or names none", async () => {
  for (const found of [notFound, create(PayoutSchema)]) {
    const { tell, look } = rig(found);
    await tell(payout("t1", "pending"));
    const known = await look();
    assert.deepEqual([known.payout?.transactionId, known.outcomeUnknown], ["t1", false]);
  }
});

test("a payout that the service finds makes the outcome known, unless an earlier call made it", async () => {
  const { begin, intents, look } = rig(payout("t1", "success"));
  const intent = await begin();
  await intents.end(account, intent, { state: "unknown" });
  assert.equal((await look()).outcomeUnknown, false);

  const again = rig(payout("t1", "success"));
  await again.intents.end(account, await again.begin(), {
    ...{ state: "closed", mark: "t1", key: "keep" },
  });
  await again.intents.end(account, await again.begin(), { state: "unknown" });
  const known = await again.look();
  assert.deepEqual([known.payout?.transactionId, known.outcomeUnknown], ["t1", true]);
});

for (const [end, isGivenUp, state] of [
  ["success", true, PayoutState.PAID],
  ["failure", false, PayoutState.FAILED],
] as const) {
  const pending = isGivenUp ? "given up as pending" : "pending";
  test(`a ${pending} payout is settled by whoever finds out its end: ${end}`, async () => {
    const { begin, intents, look, tell } = rig(payout("t1", end));
    const intent = await begin();
    await tell(payout("t1", "pending"));
    await intents.end(account, intent, { state: "pending", subjectId: "t1", key: "keep" });
    if (isGivenUp) await intents.giveUp(account, intent);
    const known = async () => {
      const { calls, operations } = await intents.known(account, PAYOUT, externalId);
      return [calls.length, operations.map(({ status }) => status)];
    };
    assert.deepEqual(await known(), [1, ["pending"]]);
    const found = await look();
    assert.deepEqual([found.state, found.needsOperator], [state, false]);
    assert.deepEqual(await known(), [0, [end]], "others see it, and nobody has to look any more");
  });
}

test("other errors of the look-up are returned to the caller", async () => {
  const { begin, look } = rig(new GatewayError("UNAVAILABLE", "out of reach"));
  await begin();
  await assert.rejects(look(), { code: "UNAVAILABLE", message: "out of reach" });
});

test("while the store is away, a successful payout is returned as the service reports it", async () => {
  const { intents, look } = rig(payout("t1", "success"));
  intents.known = async () => {
    throw new GatewayError("UNAVAILABLE", "the store is out of reach");
  };
  assert.equal((await look()).payout?.transactionId, "t1");
});

test("a payout whose answer could not be written is UNKNOWN until the log has it", async () => {
  const { begin, intents, look, tell } = rig(notFound);
  const ending = { state: "pending", subjectId: "t1", key: "keep" } as const;
  await intents.end(account, await begin(), ending);
  assert.deepEqual(
    [(await look()).state, (await look()).outcomeUnknown],
    [PayoutState.UNKNOWN, true],
  );
  await tell(payout("t1", "pending"));
  const { state, outcomeUnknown } = await look();
  assert.deepEqual([state, outcomeUnknown], [PayoutState.PENDING, false]);
});

test("an answer that names no transaction leaves the outcome unknown, and bars a second payout", async () => {
  const { core } = coreBefore({
    async requestPayout(_, { onSent }) {
      onSent?.();
      return create(PayoutSchema, { externalId, status: "success" });
    },
    getPayout: async () => create(PayoutSchema, { externalId, status: "success" }),
  });
  const call = callOf(["payouts:read", "payouts:write"]);
  const request = create(RequestPayoutRequestSchema, payoutRequest(externalId));
  const told = await core.requestPayout(request, call).catch((error) => error);
  assert.deepEqual([told.code, told.details.outcomeUnknown], ["UNKNOWN", { externalId }]);
  const details = { reason: "CALL_IN_FLIGHT" };
  await assert.rejects(core.requestPayout(request, call), { code: "ABORTED", details });
  const look = core.getPayout(create(GetPayoutRequestSchema, { externalId }), call);
  assert.equal((await look).state, PayoutState.UNKNOWN);
});

test("CreatePayment answers in time while the store is silent, also if it is to wait", async () => {
  const inTime = async (waitUntil: WaitUntil) => {
    // The log has the answer already, so that its state has to be read.
    const details = { status: PaymentStatus.PENDING, paymentId: "p1" };
    const payment = create(PaymentSchema, { details });
    const { core, log } = coreBefore({ createPayment: async () => payment });
    const entry = paymentEntry(payment, { source: EventSource.RESPONSE, externalId });
    assert.ok(entry);
    await log.append(account, entry);
    const { caller } = callOf(["payments:write"]);
    log.known = () => new Promise<never>(() => {});
    await using edge = await start(core, { identify: async () => caller });
    const payments = createClient(PaymentService, edge.transport("connect", "1.1"));
    const request = { ...paymentRequest(externalId), waitUntil };
    // A tenth of it is left for the answer, which a busy machine may need.
    const answer = await payments.createPayment(request, { timeoutMs: 8_000 });
    assert.equal(answer.payment?.details?.status, PaymentStatus.PENDING);
    assert.deepEqual([answer.state, answer.cursor], [PaymentState.PENDING, ""]);
  };
  await Promise.all([inTime(WaitUntil.UNSPECIFIED), inTime(WaitUntil.SETTLED)]);
});

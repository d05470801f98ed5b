import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { GatewayError } from "../../src/errors.ts";
import { UpstreamErrorSchema } from "../../src/gen/payments/v1/error_pb.ts";
import {
  PaymentMethodInputSchema,
  PaymentMode,
} from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentMethodType,
  PaymentOperation,
  PaymentOperationSchema,
  PaymentSchema,
  PaymentState,
  PaymentStateSchema,
  PaymentStatus,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  GetPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { SendOptions } from "../../src/upstream/upstream.ts";
import { payment, stateOn } from "../ledger/entries.ts";
import { account, callOf, coreBefore } from "./rig.ts";

const externalId = "order-1";

/** What the service does with a call, and what it answers. */
type Behaviour = () => Promise<MessageInitShape<typeof PaymentSchema>>;

function rig() {
  let behaviour: Behaviour = () => assert.fail("nothing is sent");
  const send = async (_: unknown, options: SendOptions) => {
    options.onSent?.();
    return create(PaymentSchema, await behaviour());
  };
  const { core, log } = coreBefore({ createPayment: send, confirmPayment: send });
  const call = callOf(["payments:read", "payments:write"]);
  const request = (confirm: boolean) =>
    create(CreatePaymentRequestSchema, {
      ...{ amount: "10.00", currency: "UAH", mode: PaymentMode.HOSTED, externalId, confirm },
      paymentMethod: create(PaymentMethodInputSchema, { type: PaymentMethodType.CARD }),
    });
  const known = () => core.getPayment(create(GetPaymentRequestSchema, { externalId }), call);
  return {
    known,
    async pay(confirm: boolean, does: Behaviour) {
      behaviour = does;
      return core.createPayment(request(confirm), call);
    },
    async confirm(does: Behaviour) {
      behaviour = does;
      return core.confirmPayment(create(ConfirmPaymentRequestSchema, { externalId }), call);
    },
    /** Stores a callback. @returns the state that its event carries */
    async callback(told: Parameters<typeof payment>[0]) {
      const { event } = await log.append(account, payment({ amount: "10.00", ...told }));
      return event && stateOn(event);
    },
    /** The operations that GetPayment lists. */
    async operations() {
      return (await known()).operations.map(({ operation, paymentId, status, statusCode = "" }) => {
        const names = [PaymentOperationSchema.value[operation], PaymentStatusSchema.value[status]];
        const [what, became] = names.map((value) => value?.localName.toLowerCase());
        return `${what} ${paymentId} ${became} ${statusCode}`;
      });
    },
    state: async () => PaymentStateSchema.value[(await known()).state]?.localName,
  };
}

const answer = (status: PaymentStatus, paymentId: string) => ({
  externalId,
  details: { paymentId, status, amount: "10.00", currency: "UAH" },
});
const succeeded = (paymentId: string) => answer(PaymentStatus.SUCCESS, paymentId);

test("a hold is AUTHORIZED until it is confirmed, also if its callback comes before its answer", async () => {
  for (const confirm of [false, true]) {
    const { pay, callback, state, known } = rig();
    const beganMs = Date.now();
    let early: string | undefined;
    await pay(confirm, async () => {
      early = await callback({ status: "success" });
      return succeeded("pay-1");
    });
    assert.equal(early, confirm ? "PAID" : "AUTHORIZED");
    assert.equal(await state(), early);
    const { operations, cursor } = await known();
    const [{ amount, currency, at } = {}] = operations;
    assert.deepEqual([operations.length, amount, currency], [1, "10.00", "UAH"]);
    assert.ok(at && timestampMs(at) >= beganMs && cursor !== "");
    if (confirm) continue;
    assert.equal(await callback({ operation: "confirm", status: "failure" }), "AUTHORIZED");
    assert.equal(await callback({ operation: "confirm", status: "success" }), "PAID");
    assert.equal(await state(), "PAID");
  }
});

test("GetPayment lists a confirmation that the service attempted and declined with an Error object", async () => {
  for (const [said, recorded] of [
    [{ code: "insufficient_funds", paymentId: "pay-1" }, true],
    [{ code: "insufficient_funds" }, true],
    [{ code: "a_code_of_tomorrow", httpStatus: 402 }, true],
    [{ code: "action_not_allowed", paymentId: "pay-1" }, false],
    [{ code: "wrong_amount", paymentId: "pay-1" }, false],
    [{ code: "transaction_already_paid", paymentId: "pay-1" }, false],
  ] as const) {
    const { pay, confirm, state, callback, operations } = rig();
    await pay(false, async () => succeeded("pay-1"));
    const upstream = create(UpstreamErrorSchema, { httpStatus: 400, message: "no", ...said });
    await assert.rejects(
      confirm(async () => {
        throw new GatewayError("FAILED_PRECONDITION", "no", { upstream });
      }),
    );
    assert.equal(await state(), "AUTHORIZED");
    const failed = `confirm pay-1 failure ${said.code}`;
    const paid = "payment pay-1 success ";
    assert.deepEqual(await operations(), recorded ? [paid, failed] : [paid], said.code);
    // Its callback, which says more, replaces it, but may never arrive.
    if (said.code === "insufficient_funds") {
      await callback({ operation: "confirm", operationId: "op-2", status: "failure" });
      assert.deepEqual(await operations(), [paid, "confirm pay-1 failure "]);
      assert.equal(await state(), "AUTHORIZED");
    }
    const { details, ...rest } = succeeded("pay-1");
    const confirmed = { ...rest, operation: PaymentOperation.CONFIRM };
    await confirm(async () => ({ ...confirmed, details: { ...details, operationId: "op-3" } }));
    assert.equal(await state(), "PAID");
  }
});

const { FAILURE, PENDING, SUCCESS } = PaymentStatus;
const isUnknown = ({ details }: GatewayError) => details.outcomeUnknown !== undefined;

for (const [what, told] of [
  ["is about a refund", { ...succeeded("p-1"), operation: PaymentOperation.REFUND }],
  ["is about a cancellation", { ...succeeded("p-1"), operation: PaymentOperation.CANCEL }],
  ["is about a look-up", { ...succeeded("p-1"), operation: PaymentOperation.LOOKUP }],
  ["is about a confirmation", { ...succeeded("p-1"), operation: PaymentOperation.CONFIRM }],
  ["names no payment, and says pending", { details: { status: PENDING } }],
] as const) {
  test(`an answer that ${what} leaves the outcome of a payment unknown`, async () => {
    const { pay, state } = rig();
    await assert.rejects(
      pay(true, async () => told),
      isUnknown,
    );
    assert.equal(await state(), "UNKNOWN");
    await assert.rejects(
      pay(true, async () => told),
      { code: "ABORTED" },
    );
  });
}

test("an answer with a checkout page that names no payment is given, and bars no further attempt", async () => {
  const { pay, callback, state } = rig();
  const action = { type: "redirect", value: "https://checkout.example/1" };
  for (const _ of ["first", "second"]) {
    const { payment } = await pay(true, async () => ({ action, isSuccess: true }));
    assert.equal(payment?.action?.value, action.value);
    assert.equal(await state(), "UNKNOWN");
  }
  await callback({ status: "success" });
  assert.equal(await state(), "PAID");
});

test("is_success without a status is no payment while the payer has a page to go to", async () => {
  const action = { type: "redirect", value: "https://checkout.example/1" };
  for (const asked of [{ action }, { actionRequired: true }]) {
    const { pay, callback, state } = rig();
    const told = async () => ({ ...{ id: "pay-1", isSuccess: true }, ...asked });
    assert.equal((await pay(true, told)).state, PaymentState.PENDING);
    await callback({ status: "success" });
    assert.equal(await state(), "PAID");
  }
});

test("an answer about the payment leaves the outcome of its confirmation unknown", async () => {
  const { pay, confirm, callback, state } = rig();
  const { PAYMENT: operation } = PaymentOperation;
  const does = async () => ({ ...succeeded("pay-1"), operation });
  await pay(false, does);
  await assert.rejects(confirm(does), isUnknown);
  assert.equal(await state(), "UNKNOWN");
  await callback({ operation: "confirm", status: "success" });
  assert.equal(await state(), "PAID");

  const another = rig();
  await assert.rejects(another.confirm(does), isUnknown, "nor does it of one by another client");
  assert.equal(await another.state(), "UNKNOWN");
});

test("an answer that says how the payment ended is understood, even if it names none", async () => {
  const details = { status: SUCCESS, amount: "10.00", currency: "UAH" };
  for (const told of [{ details }, { details, isSuccess: true }]) {
    const { pay, confirm, callback, operations, state } = rig();
    assert.equal((await pay(true, async () => told)).state, PaymentState.PAID);
    assert.deepEqual(await operations(), ["payment undefined success "]);
    await callback({ status: "success" });
    await callback({ operation: "refund", operationId: "r-1", status: "success" });
    assert.equal(await state(), "REFUNDED");
    assert.equal((await confirm(async () => told)).state, PaymentState.REFUNDED);
  }
  const failing = rig();
  const fails = async () => ({ details: { status: FAILURE, statusCode: "insufficient_funds" } });
  for (const _ of ["first", "second"]) {
    assert.equal((await failing.pay(true, fails)).state, PaymentState.FAILED);
    assert.equal(await failing.state(), "FAILED");
  }
  assert.deepEqual(await failing.operations(), ["payment undefined failure insufficient_funds"]);
});

test("a hold whose answer names no payment is AUTHORIZED once its callback does", async () => {
  const { pay, confirm, callback, state } = rig();
  const told = async () => ({ details: { status: SUCCESS } });
  await assert.rejects(pay(false, told), isUnknown);
  await callback({ status: "success" });
  assert.equal(await state(), "AUTHORIZED");
  assert.equal((await confirm(told)).state, PaymentState.PAID);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { add, compare, onePercent, subtract } from "../ledger/money.ts";
import { assertRefused, cardPayment, newPayment, startRig, startShop } from "./start.ts";

test("refunds send callbacks with the same payment_id until the whole amount is refunded", async (t) => {
  const { act, receiver, pay } = await startShop(t);
  const paid = await pay(newPayment());
  await receiver.next();
  const { payment_id, operation_id } = paid.body.details;
  const refund = (members?: object) => act(paid, "refund", members);
  const part = await refund({ amount: 2.5 });
  assert.equal(part.body.operation, "refund");
  assert.equal(part.body.details.amount, "2.5");
  assert.equal(part.body.details.payment_id, payment_id);
  assert.notEqual(part.body.details.operation_id, operation_id);
  assert.deepEqual((await receiver.next()).body, part.body);
  const over = await refund({ amount: 7.51 });
  assert.equal(over.body.code, "incorrect_refund_sum_or_currency");
  assert.equal((await refund({ amount: "4" })).body.details.amount, "4", "as text too");
  assert.equal((await receiver.next()).body.details.amount, "4");
  assert.equal((await refund()).body.details.amount, "3.5");
  assert.equal((await receiver.next()).body.details.amount, "3.5");
  assert.equal((await refund()).body.code, "incorrect_refund_sum_or_currency");
  for (const amount of ["", "x", "-1", "0", true]) {
    const { body } = await refund({ amount });
    assert.match(body.code, /^(wrong_amount|invalid_request_body)$/);
    assert.equal(body.param, "amount");
  }
});

test("a held payment is canceled once, and then neither confirmed nor refunded", async (t) => {
  const { act, confirm, receiver, pay } = await startShop(t);
  const held = await pay(newPayment({ confirm: false }));
  await receiver.next();
  assert.equal((await act(held, "refund")).body.code, "action_not_allowed");
  const canceled = await act(held, "cancel");
  assert.equal(canceled.body.operation, "cancel");
  assert.equal(canceled.body.details.status, "success");
  assert.deepEqual((await receiver.next()).body, canceled.body);
  assert.equal((await act(held, "cancel")).body.code, "action_already_done");
  assert.equal((await confirm()).body.code, "action_not_allowed");
});

test("a refund cannot exceed the confirmed amount", async (t) => {
  const { act, confirm, pay } = await startRig(t);
  const held = await pay(newPayment({ confirm: false }));
  await confirm({ amount: 6 });
  const over = await act(held, "refund", { amount: 6.01 });
  assert.equal(over.body.code, "incorrect_refund_sum_or_currency");
  assert.equal((await act(held, "refund")).body.details.amount, "6");
  assert.equal((await act(held, "cancel")).body.code, "action_not_allowed");
});

test("a pending payment can be settled by hand, once", async (t) => {
  const { act, receiver, pay } = await startShop(t);
  const pending = await pay(cardPayment("4000000000003014"));
  const settle = (status: string) => act(pending, "settle", { status });
  assert.equal((await settle("pending")).body.param, "status");
  const failed = await settle("failure");
  assert.equal(failed.body.details.status_code, "transaction_declined");
  assert.deepEqual((await receiver.next()).body, failed.body);
  assert.equal((await settle("success")).body.code, "action_already_done");
});

test("a payment that was settled by hand keeps its end when it would have settled by itself", async (t) => {
  const delays = { settleMs: 60_000 };
  const { act, call, sandbox, receiver, pay } = await startShop(t, [], { delays });
  await act(await pay(cardPayment("4000000000000655")), "settle", { status: "failure" });
  await call("POST", "/__sandbox/clock", { advance_ms: 60_000 });
  await sandbox.idle();
  assert.equal(sandbox.ledger().payments[0]?.operations[0]?.status, "failure");
  assert.deepEqual(
    receiver.received.map((callback) => callback.body.details.status),
    ["failure"],
  );
});

test("an unknown payment is not found", async (t) => {
  const { call } = await startRig(t);
  for (const action of ["refund", "cancel", "settle"]) {
    const body = { status: "success" };
    const unknown = await call("POST", `/sandbox/payments/nothing/${action}`, body);
    assertRefused(unknown, 404, "transaction_not_found");
  }
});

test("the ledger shows what was done, without card numbers and tokens", async (t) => {
  const { sandbox, pay, get } = await startRig(t);
  const { body } = await pay(newPayment());
  const ledger = await get("/sandbox/ledger");
  assert.deepEqual(ledger.body, JSON.parse(JSON.stringify(sandbox.ledger())));
  const [payment] = ledger.body.payments;
  assert.equal(payment.card_mask, "411111******1111");
  assert.equal(payment.operations[0].scenario, "success");
  assert.ok(!ledger.text.includes("4111111111111111"));
  assert.ok(!ledger.text.includes(body.payment_method.cc_token.token));
});

test("amounts are added, subtracted and compared exactly", () => {
  assert.equal(add("0.1", "0.2"), "0.3");
  assert.equal(add("99999999999.99", "0.01"), "100000000000.00");
  assert.equal(subtract("10", "2.5"), "7.5");
  assert.equal(onePercent("100.50"), "1.01");
  assert.equal(onePercent("0.49"), "0.00");
  assert.equal(compare("10", "10.00"), 0);
  const amount = fc
    .tuple(fc.nat(999_999_999), fc.integer({ min: 0, max: 6 }), fc.nat(999_999))
    .map(([whole, places, rest]) =>
      places === 0 ? `${whole}` : `${whole}.${`${rest}`.padStart(6, "0").slice(0, places)}`,
    );
  fc.assert(
    fc.property(amount, amount, (a, b) => {
      assert.equal(compare(subtract(add(a, b), b), a), 0);
      assert.equal(add(a, b), add(b, a));
      assert.equal(Math.sign(compare(a, b)), Math.sign(Number(a) - Number(b)));
    }),
  );
});

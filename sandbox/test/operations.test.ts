import assert from "node:assert/strict";
import { test } from "node:test";
import { assertRefused, cardPayment, newPayment, paths, startRig } from "./start.ts";

test("operation info returns an operation in the spec's shape", async (t) => {
  const { pay, get } = await startRig(t);
  const raw = JSON.stringify(newPayment({ unified_external_id: "u", payload: "p" }));
  const payment = await pay(raw.replace('"amount":10,', '"amount":10.10,'));
  const { details, receipt_url } = payment.body;
  const { status, body, text } = await get(info("order-1", details.operation_id));
  assert.equal(status, 200);
  assert.deepEqual(body, {
    action: null,
    id: details.operation_id,
    external_id: "order-1",
    unified_external_id: "u",
    details: {
      method: "sale",
      operation_id: details.operation_id,
      transaction_id: details.transaction_id,
      billing_order_id: details.billing_order_id,
      gateway_order_id: details.gateway_order_id,
      rrn: details.rrn,
      amount: 10.1,
      currency: "UAH",
    },
    status: "success",
    status_code: "transaction_successful",
    status_description: "Transaction is successful",
    created_at: details.created_at,
    processed_at: details.processed_at,
    payload: "p",
    auth_code: details.auth_code,
    bank_name: "Sandbox Bank",
    action_required: false,
    receipt_url,
    payment_method_type: "cc_number",
    one_stage: true,
  });
  assert.match(text, /"amount":10\.10[,}]/);
});

test("operation info follows the operation through its states", async (t) => {
  const { act, pay, get } = await startRig(t);
  const payment = await pay(cardPayment("4000000000003014"));
  const { operation_id } = payment.body.details;
  const pending = (await get(info("order-1", operation_id))).body;
  assert.deepEqual([pending.status, pending.status_code], ["pending", "waiting_for_redirect"]);
  assert.deepEqual(pending.action, payment.body.action);
  await act(payment, "settle", { status: "success" });
  assert.equal((await get(info("order-1", operation_id))).body.status, "success");
  const refund = await act(payment, "refund");
  const refunded = await get(info("order-1", refund.body.details.operation_id));
  assert.equal(refunded.body.status_code, "refund_successful");
});

test("operation info maps a failure to a code of the spec's operation statuses", async (t) => {
  const { sandbox, pay, get } = await startRig(t);
  await pay(cardPayment("4000000000000630"));
  const operationId = sandbox.ledger().payments[0]?.operations[0]?.operation_id ?? "";
  const { body } = await get(info("order-1", operationId));
  assert.deepEqual([body.status, body.status_code], ["failure", "transaction_declined"]);
});

test("an unknown operation is not found", async (t) => {
  const { pay, get } = await startRig(t);
  assertRefused(await get(info("order-1", "o")), 404, "transaction_not_found");
  await pay(newPayment());
  const other = await get(info("order-1", "o"));
  assert.deepEqual([other.status, other.body.param], [404, "operation_id"]);
  const missing = await get(`${paths.operation}?external_id=order-1`);
  assert.deepEqual([missing.status, missing.body.param], [400, "operation_id"]);
});

function info(externalId: string, operationId: string): string {
  return `${paths.operation}?${new URLSearchParams({ external_id: externalId, operation_id: operationId })}`;
}

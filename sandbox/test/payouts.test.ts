import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertRefused,
  newPayment,
  password,
  paths,
  signatureOf,
  startRig,
  startShop,
  uuidPattern,
} from "./start.ts";

const person = {
  email: "anna@example.com",
  first_name: "Anna",
  last_name: "Koval",
  middle_name: "Ivanivna",
  phone: "+380501234567",
  rid: "0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60",
  ipn: "1234567890",
  external_id: "person-1",
};

const cardPayout = {
  order: {
    currency: "UAH",
    description: "Salary",
    external_id: "payout-1",
    original_amount: "100.50",
  },
  payer: { entity_id: "entity-1" },
  payout_type: "card",
  recipient: { card: { ...person, card_data: { number: "4111111111111111" } as object } },
};

const succeeded = {
  status: "success",
  status_code: "transaction_successful",
  status_code_description: "Transaction is successful",
};

const payoutTo = (card_data: object) => ({
  ...cardPayout,
  recipient: { card: { ...person, card_data } },
});
const cashPayout = { ...cardPayout, recipient: { cash: person }, payout_type: "cash" };

test("a payout is pending, then succeeds; info and callback have the spec's shapes", async (t) => {
  const { payOut, sandbox, receiver, get } = await startShop(t);
  const { status, body, text } = await payOut(cardPayout);
  assert.equal(status, 200);
  assert.ok(!text.includes("41111111"));
  const { transaction_id, fc_id, ...rest } = body;
  assert.match(transaction_id, uuidPattern);
  assert.ok(Number.isInteger(fc_id));
  assert.deepEqual(rest, {
    currency: "UAH",
    description: "Salary",
    external_id: "payout-1",
    original_amount: "100.50",
    partner_key_id: "sandbox",
    payer_account: { entity_id: "entity-1" },
    payer_amount: "101.51",
    payer_outer_fee: "1.01",
    payment_type: "payout",
    payout_type: "card",
    recipient_user: person,
    status: "pending",
    status_code: "pending",
    status_code_description: "Transaction is pending",
  });
  const callback = await receiver.next();
  assert.equal(callback.headers["x-service-signature"], signatureOf(callback.bytes, password));
  assert.deepEqual(callback.body, {
    transaction_id,
    partner_key_id: "sandbox",
    external_id: "payout-1",
    fc_id,
    currency: "UAH",
    original_amount: "100.50",
    payer_amount: "101.51",
    payer_outer_fee: "1.01",
    recipient_amount: "100.50",
    payment_type: "payout",
    payout_type: "card",
    ...succeeded,
  });
  await sandbox.idle();
  const info = await get(`${paths.payoutInfo}?external_id=payout-1`);
  assert.deepEqual(info.body, { ...body, ...succeeded });
});

test("a second payout with the same external_id is refused", async (t) => {
  const { payOut } = await startRig(t);
  await payOut(cashPayout);
  assertRefused(await payOut(cashPayout), 409, "action_already_done", "order.external_id");
});

test("a payout can pay to the card of a token", async (t) => {
  const { pay, payOut } = await startRig(t);
  const { token } = (await pay(newPayment())).body.payment_method.cc_token;
  const unknown = await payOut(payoutTo({ token: "tok_unknown" }));
  assert.equal(unknown.body.code, "invalid_card_token");
  assert.equal((await payOut(payoutTo({ token }))).status, 200);
});

test("a payout's magic card or amount decides its outcome", async (t) => {
  const { payOut, sandbox, receiver, get } = await startShop(t);
  const byCard = withOrder(payoutTo({ number: "4000000000000614" }), { external_id: "a" });
  const byAmount = (external_id: string, original_amount: string) =>
    withOrder(cashPayout, { external_id, original_amount });

  assert.equal((await payOut(byCard)).body.status, "pending");
  const failed = (await receiver.next()).body;
  assert.deepEqual([failed.status, failed.status_code], ["failure", "insufficient_funds"]);

  await payOut(byAmount("b", "5.64"));
  assert.equal((await receiver.next()).body.status_code, "anti_fraud_check");

  await payOut(byAmount("c", "5.67"));
  const same = [await receiver.next(), await receiver.next(), await receiver.next()];
  for (const { bytes } of same) assert.deepEqual(bytes, same[0]?.bytes);

  await payOut(byAmount("d", "5.68"));
  const statuses = [(await receiver.next()).body.status, (await receiver.next()).body.status];
  assert.deepEqual(statuses, ["success", "pending"]);

  await payOut(byAmount("e", "5.69"));
  await assert.rejects(payOut(byAmount("f", "5.71")));
  await sandbox.idle();
  assert.equal(receiver.received.length, 7);
  for (const external_id of ["e", "f"]) {
    const info = await get(`${paths.payoutInfo}?external_id=${external_id}`);
    assert.equal(info.body.status, "success");
  }

  await assert.rejects(payOut(byAmount("g", "5.76")));
  assert.equal((await receiver.next()).body.external_id, "g");
  assert.equal((await payOut(byAmount("h", "5.73"))).status, 429);
  assert.equal((await payOut(byAmount("h", "5.72"))).status, 500);
  const unknown = await get(`${paths.payoutInfo}?external_id=h`);
  assert.equal(unknown.status, 404);
});

test("callback/resend sends a payout's callback again", async (t) => {
  const { payOut, resend, sandbox, receiver, pay } = await startShop(t);
  await payOut(withOrder(cashPayout, { original_amount: "5.69" }));
  await sandbox.idle();
  assert.equal(receiver.received.length, 0);
  assert.equal((await resend({ external_id: "payout-1" })).status, 200);
  const { body, headers, bytes } = await receiver.next();
  assert.deepEqual([body.external_id, body.status], ["payout-1", "success"]);
  assert.equal(headers["x-service-signature"], signatureOf(bytes, password));
  const refused = await resend({ external_id: "payout-1", operation: "payment" });
  assertRefused(refused, 404, "transaction_not_found");
  await payOut(withOrder(cashPayout, { external_id: "silent", callback_url: undefined }));
  assertRefused(await resend({ external_id: "silent" }), 403, "action_not_allowed");
  await pay(newPayment({ external_id: "payout-1" }));
  await resend({ external_id: "payout-1" });
  assert.equal((await receiver.next()).body.operation, "payment");
});

test("an unknown payout is not found", async (t) => {
  const { get } = await startRig(t);
  const refused = await get(`${paths.payoutInfo}?external_id=nothing`);
  assertRefused(refused, 404, "transaction_not_found", "external_id");
  const missing = await get(paths.payoutInfo);
  assert.deepEqual([missing.status, missing.body.param], [400, "external_id"]);
});

test("a payout request that breaks the spec is refused with the field's path", async (t) => {
  const { payOut, sandbox } = await startRig(t);
  const { first_name: _, ...nameless } = person;
  const wrong: readonly (readonly [request: object, param: string, code?: string])[] = [
    [{}, "order"],
    [{ ...cardPayout, payout_type: undefined }, "payout_type"],
    [{ ...cardPayout, payout_type: "crypto" }, "payout_type"],
    [{ ...cardPayout, payer: {} }, "payer.entity_id"],
    [{ ...cardPayout, recipient: { cash: person } }, "recipient.card"],
    [{ ...cashPayout, recipient: { cash: nameless } }, "recipient.cash.first_name"],
    [{ ...cashPayout, recipient: { cash: { ...person, rid: "1" } } }, "recipient.cash.rid"],
    [
      { ...cashPayout, recipient: { cash: { ...person, phone: "call me" } } },
      "recipient.cash.phone",
    ],
    [withOrder(cashPayout, { description: "" }), "order.description"],
    [withOrder(cashPayout, { external_id: undefined }), "order.external_id"],
    [withOrder(cashPayout, { currency: "???" }), "order.currency", "invalid_currency"],
    [withOrder(cashPayout, { original_amount: 5 }), "order.original_amount"],
    [withOrder(cashPayout, { original_amount: "1e3" }), "order.original_amount", "wrong_amount"],
    [withOrder(cashPayout, { original_amount: "0.00" }), "order.original_amount", "wrong_amount"],
    [withOrder(cashPayout, { callback_url: "ftp://x/" }), "order.callback_url"],
    [payoutTo({}), "recipient.card.card_data.number", "missed_payout_method_data"],
    [
      payoutTo({ number: "4111111111111112" }),
      "recipient.card.card_data.number",
      "wrong_card_number",
    ],
    [payoutTo({ number: "4111111111111111", token: "t" }), "recipient.card.card_data.token"],
  ];
  for (const [request, param, code = "invalid_request_body"] of wrong) {
    const answer = await payOut(request);
    assertRefused(answer, 400, code, param);
    assert.ok(!answer.text.includes("41111111"));
  }
  assert.deepEqual(sandbox.ledger().payouts, []);
});

function withOrder(payout: { order: object }, order: object): object {
  return { ...payout, order: { ...payout.order, ...order } };
}

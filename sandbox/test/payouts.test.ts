import assert from "node:assert/strict";
import { test } from "node:test";
import {
  newPayment,
  password,
  paths,
  signatureOf,
  startReceiver,
  startRig,
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
  recipient: { card: { ...person, card_data: { number: "4111111111111111" } } },
  payout_type: "card",
};

const succeeded = {
  status: "success",
  status_code: "transaction_successful",
  status_code_description: "Transaction is successful",
};

const cashPayout = { ...cardPayout, recipient: { cash: person }, payout_type: "cash" };

test("a payout is pending, then succeeds; info and callback have the spec's shapes", async (t) => {
  const { call, sandbox } = await startRig(t);
  const receiver = await startReceiver(t);
  const { status, body, text } = await call(
    "POST",
    paths.requestPayout,
    withOrder(cardPayout, { callback_url: receiver.url }),
  );
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
  const info = await call("GET", `${paths.payoutInfo}?external_id=payout-1`);
  assert.deepEqual(info.body, { ...body, ...succeeded });
});

test("a second payout with the same external_id is refused", async (t) => {
  const { call } = await startRig(t);
  await call("POST", paths.requestPayout, cashPayout);
  const { status, body } = await call("POST", paths.requestPayout, cashPayout);
  assert.equal(status, 409);
  assert.equal(body.code, "action_already_done");
  assert.equal(body.param, "order.external_id");
});

test("a payout can pay to the card of a token", async (t) => {
  const { call } = await startRig(t);
  const payment = await call("POST", paths.new, newPayment());
  const { token } = payment.body.payment_method.cc_token;
  const to = (card_data: object) =>
    call("POST", paths.requestPayout, {
      ...cardPayout,
      recipient: { card: { ...person, card_data } },
    });
  assert.equal((await to({ token: "tok_unknown" })).body.code, "invalid_card_token");
  assert.equal((await to({ token })).status, 200);
});

test("a payout's magic card or amount decides its outcome", async (t) => {
  const { call, sandbox } = await startRig(t);
  const receiver = await startReceiver(t);
  const callback_url = receiver.url;
  const card = { recipient: { card: { ...person, card_data: { number: "4000000000000614" } } } };
  const byCard = { ...withOrder(cardPayout, { callback_url, external_id: "a" }), ...card };
  const byAmount = (external_id: string, original_amount: string) =>
    withOrder(cashPayout, { callback_url, external_id, original_amount });

  assert.equal((await call("POST", paths.requestPayout, byCard)).body.status, "pending");
  const failed = (await receiver.next()).body;
  assert.deepEqual([failed.status, failed.status_code], ["failure", "insufficient_funds"]);

  await call("POST", paths.requestPayout, byAmount("b", "5.64"));
  assert.equal((await receiver.next()).body.status_code, "anti_fraud_check");

  await call("POST", paths.requestPayout, byAmount("c", "5.67"));
  const same = [await receiver.next(), await receiver.next(), await receiver.next()];
  for (const { bytes } of same) assert.deepEqual(bytes, same[0]?.bytes);

  await call("POST", paths.requestPayout, byAmount("d", "5.68"));
  const statuses = [(await receiver.next()).body.status, (await receiver.next()).body.status];
  assert.deepEqual(statuses, ["success", "pending"]);

  await call("POST", paths.requestPayout, byAmount("e", "5.69"));
  await assert.rejects(call("POST", paths.requestPayout, byAmount("f", "5.71")));
  await sandbox.idle();
  assert.equal(receiver.received.length, 7);
  for (const external_id of ["e", "f"]) {
    const info = await call("GET", `${paths.payoutInfo}?external_id=${external_id}`);
    assert.equal(info.body.status, "success");
  }

  await assert.rejects(call("POST", paths.requestPayout, byAmount("g", "5.76")));
  assert.equal((await receiver.next()).body.external_id, "g");
  assert.equal((await call("POST", paths.requestPayout, byAmount("h", "5.73"))).status, 429);
  assert.equal((await call("POST", paths.requestPayout, byAmount("h", "5.72"))).status, 500);
  const unknown = await call("GET", `${paths.payoutInfo}?external_id=h`);
  assert.equal(unknown.status, 404);
});

test("callback/resend sends a payout's callback again", async (t) => {
  const { call, sandbox } = await startRig(t);
  const receiver = await startReceiver(t);
  const resend = (members: object) => call("POST", paths.resend, members);
  const order = { callback_url: receiver.url, original_amount: "5.69" };
  await call("POST", paths.requestPayout, withOrder(cashPayout, order));
  await sandbox.idle();
  assert.equal(receiver.received.length, 0);
  assert.equal((await resend({ external_id: "payout-1" })).status, 200);
  const { body, headers, bytes } = await receiver.next();
  assert.deepEqual([body.external_id, body.status], ["payout-1", "success"]);
  assert.equal(headers["x-service-signature"], signatureOf(bytes, password));
  const other = await resend({ external_id: "payout-1", operation: "payment" });
  assert.deepEqual([other.status, other.body.code], [404, "transaction_not_found"]);
  await call("POST", paths.requestPayout, withOrder(cashPayout, { external_id: "silent" }));
  const silent = await resend({ external_id: "silent" });
  assert.deepEqual([silent.status, silent.body.code], [403, "action_not_allowed"]);
  await call(
    "POST",
    paths.new,
    newPayment({ external_id: "payout-1", callback_url: receiver.url }),
  );
  await resend({ external_id: "payout-1" });
  assert.equal((await receiver.next()).body.operation, "payment");
});

test("an unknown payout is not found", async (t) => {
  const { call } = await startRig(t);
  const { status, body } = await call("GET", `${paths.payoutInfo}?external_id=nothing`);
  assert.equal(status, 404);
  assert.equal(body.code, "transaction_not_found");
  assert.equal(body.param, "external_id");
  const missing = await call("GET", paths.payoutInfo);
  assert.deepEqual([missing.status, missing.body.param], [400, "external_id"]);
});

test("a payout request that breaks the spec is refused with the field's path", async (t) => {
  const { call, sandbox } = await startRig(t);
  const { first_name: _, ...nameless } = person;
  const card = (card_data: object) => ({
    ...cardPayout,
    recipient: { card: { ...person, card_data } },
  });
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
    [card({}), "recipient.card.card_data.number", "missed_payout_method_data"],
    [card({ number: "4111111111111112" }), "recipient.card.card_data.number", "wrong_card_number"],
    [card({ number: "4111111111111111", token: "t" }), "recipient.card.card_data.token"],
  ];
  for (const [request, param, code = "invalid_request_body"] of wrong) {
    const { status, body, text } = await call("POST", paths.requestPayout, request);
    assert.deepEqual([status, body.code, body.param], [400, code, param]);
    assert.ok(!text.includes("41111111"));
  }
  assert.deepEqual(sandbox.ledger().payouts, []);
});

function withOrder(payout: typeof cashPayout | typeof cardPayout, order: object): object {
  return { ...payout, order: { ...payout.order, ...order } };
}

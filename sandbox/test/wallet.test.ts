import assert from "node:assert/strict";
import { test } from "node:test";
import { assertRefused, customerToken, newPayment, paths, startRig, uuidPattern } from "./start.ts";

const confirmed = "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01";
const unconfirmed = "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a02";
const demo = "external_id=demo-customer";

test("wallet/find lists a customer's cards with their full numbers", async (t) => {
  const { get } = await startRig(t);
  const { status, body } = await get(`${paths.walletFind}?${demo}`);
  assert.equal(status, 200);
  const tokens = body.map(({ card }: { card: { token: string } }) => card.token);
  assert.deepEqual(body, [
    {
      card: {
        expires_at: "2035-12-31T23:59:59Z",
        mask: "411111******1111",
        token: tokens[0],
        full_number: "4111111111111111",
        bank_short_name: "SANDBOX",
        payment_system: "visa",
      },
      option_id: confirmed,
      is_default: true,
      name: "Everyday card",
      type: "card",
    },
    {
      card: {
        expires_at: "2034-06-30T23:59:59Z",
        mask: "555555******4444",
        token: tokens[1],
        full_number: "5555555555554444",
        bank_short_name: "SANDBOX",
        payment_system: "mastercard",
      },
      option_id: unconfirmed,
      is_default: false,
      type: "card",
    },
  ]);
});

test("wallet/find returns one card as an object and none as an empty list", async (t) => {
  const { pay, get } = await startRig(t);
  const one = await get(`${paths.walletFind}?${demo}&option_id=${unconfirmed}`);
  assert.equal(one.body.option_id, unconfirmed);
  const flag = await get(`${paths.walletFind}?${demo}&option_id=true`);
  assert.equal(flag.body.length, 2);
  await pay(newPayment());
  const none = await get(`${paths.walletFind}?external_id=customer-1`);
  assert.deepEqual(none.body, []);
});

test("a customer token identifies the customer and outranks external_id", async (t) => {
  const { get } = await startRig(t);
  const find = (token: string, query = "") =>
    get(paths.walletFind + query, { "X-CUSTOMER-AUTH": token });
  const later = Math.floor(Date.now() / 1_000) + 3_600;
  for (const claims of [
    { external_id: "demo-customer", sub: "other" },
    { sub: "demo-customer", exp: later },
  ]) {
    const { body } = await find(customerToken(claims), "?external_id=other");
    assert.equal(body.length, 2);
  }
  for (const token of [
    customerToken({ external_id: "demo-customer", exp: 1_700_000_000 }),
    customerToken({}),
    customerToken({ external_id: 7 }),
    "not.a.token",
    "nonsense",
  ]) {
    const refused = await find(token);
    assertRefused(refused, 401, "customer_auth_token_expired_or_invalid");
    assert.equal(refused.body.type, "customer_error");
  }
});

test("a wallet call needs a customer that exists", async (t) => {
  const { call } = await startRig(t);
  for (const [method, path, body] of [
    ["GET", paths.walletFind],
    ["GET", `${paths.walletStatus}?option_id=${confirmed}`],
    ["DELETE", paths.wallet, { option_id: confirmed, type: "card" }],
  ] as const) {
    assertRefused(await call(method, path, body), 400, "customer_id_not_passed");
    const url = `${path}${path.includes("?") ? "&" : "?"}external_id=nobody`;
    assertRefused(await call(method, url, body), 404, "customer_profile_not_found");
  }
});

test("confirmation/status reports whether a card is confirmed", async (t) => {
  const { pay, get } = await startRig(t);
  const status = (query: string) => get(`${paths.walletStatus}?${demo}${query}`);
  const { body } = await status(`&option_id=${confirmed}`);
  const { card, ...rest } = body;
  assert.equal(card.mask, "411111******1111");
  assert.deepEqual(rest, {
    option_id: confirmed,
    is_confirmed: true,
    status: "confirmed",
    type: "card",
  });
  const waiting = (await status(`&option_id=${unconfirmed}`)).body;
  assert.equal(waiting.is_confirmed, false);
  assert.equal(waiting.status, "waiting_for_verification");
  assertRefused(await status("&option_id=other"), 404, "payment_method_not_found");
  // The spec does not require option_id.
  const usual = await status("");
  assert.deepEqual([usual.status, usual.body.option_id], [200, confirmed]);
  await pay(newPayment());
  const refused = await get(`${paths.walletStatus}?external_id=customer-1`);
  assertRefused(refused, 404, "payment_method_not_found");
});

test("a deleted card is no longer in the wallet", async (t) => {
  const { call, get } = await startRig(t);
  const remove = (body: object) => call("DELETE", `${paths.wallet}?${demo}`, body);
  const card = { option_id: confirmed, type: "card" };
  const { status, body } = await remove(card);
  assert.deepEqual([status, body], [200, { delete: true, ...card }]);
  assertRefused(await remove(card), 404, "payment_method_not_found");
  const left = await get(`${paths.walletFind}?${demo}`);
  assert.equal(left.body.option_id, unconfirmed);
  for (const [wrong, param] of [
    [{ type: "card" }, "option_id"],
    [{ option_id: "1", type: "card" }, "option_id"],
    [{ option_id: unconfirmed }, "type"],
    [{ option_id: unconfirmed, type: "iban" }, "type"],
  ] as const) {
    const refused = await remove(wrong);
    assert.deepEqual([refused.status, refused.body.param], [400, param]);
  }
});

test("save_to_wallet keeps the card of a successful payment, once", async (t) => {
  const { pay, get } = await startRig(t);
  const cc = { number: "4111111111111111", cvv: "123", exp_month: 1, exp_year: 2036 };
  const payment_method = { type: "cc_number", cc, save_to_wallet: true };
  await pay(newPayment({ payment_method }));
  await pay(newPayment({ payment_method, external_id: "order-2" }));
  const declined = { ...payment_method, cc: { ...cc, number: "4000000000000614" } };
  await pay(newPayment({ payment_method: declined, external_id: "3" }));
  const { body } = await get(`${paths.walletFind}?external_id=customer-1`);
  assert.match(body.option_id, uuidPattern);
  assert.equal(body.card.mask, "411111******1111");
  assert.equal(body.is_default, true);
  const anonymous = await pay(newPayment({ payment_method, external_id: "4", customer: {} }));
  assert.equal(anonymous.body.code, "customer_id_not_passed");
});

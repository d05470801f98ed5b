import assert from "node:assert/strict";
import { test } from "node:test";
import {
  assertRefused,
  cardPayment,
  newPayment,
  paths,
  startRig,
  startShop,
  uuidPattern,
} from "./start.ts";

test("a payment is answered with Payment transaction data that includes what was sent", async (t) => {
  const { pay } = await startRig(t);
  const raw = `{"amount":10.10,"currency":"UAH","mode":"direct","external_id":"order-1",
    "unified_external_id":"unified-1","description":"Two books","payload":"{\\"cart\\":7}",
    "init_recurrent_payment":true,"subscription_id":"sub-1",
    "customer":{"external_id":"customer-1","email":"a@example.com","first_name":"Anna",
      "last_name":"Koval","patronym":"Ivanivna","phone":"+380501234567","ip_address":"192.0.2.7"},
    "fingerprint":{"browser_accept_header":"*/*","browser_color_depth":"24",
      "browser_ip_address":"192.0.2.7","browser_java_enabled":"false","browser_language":"uk",
      "browser_screen_height":"800","browser_screen_width":"1200","browser_time_zone":"Europe/Kyiv",
      "browser_time_zone_offset":"-120","browser_user_agent":"Browser/1"},
    "products":[{"name":"Book","quantity":"2","net_amount":"5.05","tax_group":2}],
    "recipient":{"payment_method":{"type":"iban","iban":{"iban":"UA213223130000026007233566001"}}},
    "payment_method":{"type":"cc_number","save_to_wallet":true,
      "cc":{"number":"5555555555554444","cvv":"123","exp_month":2,"exp_year":2036}}}`;
  const { status, body, text } = await pay(raw);
  assert.equal(status, 200);
  const { details, payment_method: method, ...rest } = body;
  assert.match(details.payment_id, uuidPattern);
  assert.match(rest.receipt_url, /^http:\/\/127\.0\.0\.1:\d+\/receipt\/[0-9a-f]{48}$/);
  assert.deepEqual(rest, {
    action: null,
    action_required: false,
    external_id: "order-1",
    unified_external_id: "unified-1",
    id: details.payment_id,
    project_id: "sandbox",
    is_success: true,
    receipt_url: rest.receipt_url,
    customer: {
      browser_user_agent: "Browser/1",
      email: "a@example.com",
      external_id: "customer-1",
      first_name: "Anna",
      ip_address: "192.0.2.7",
      last_name: "Koval",
      patronym: "Ivanivna",
      phone: "+380501234567",
    },
    operation: "payment",
  });
  assert.match(details.transaction_id, uuidPattern);
  assert.match(details.operation_id, uuidPattern);
  assert.match(details.recurrent_id, uuidPattern);
  assert.match(details.rrn, /^\d{12}$/);
  assert.match(details.auth_code, /^\d{6}$/);
  assert.match(details.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
  const { created_at, processed_at, rrn, auth_code, recurrent_id, ...known } = details;
  assert.ok(Date.parse(processed_at) >= Date.parse(created_at));
  assert.deepEqual(known, {
    amount: "10.10",
    billing_order_id: `b-${details.payment_id}`,
    currency: "UAH",
    description: "Two books",
    gateway_order_id: `g-${details.operation_id}`,
    payload: '{"cart":7}',
    payment_id: details.payment_id,
    status: "success",
    status_code: "transaction_successful",
    status_description: "Transaction is successful",
    transaction_id: details.transaction_id,
    operation_id: details.operation_id,
    fee: { amount: "0.10", currency: "UAH" },
    terminal_name: "sandbox",
    bank_name: "Sandbox Bank",
    method: "sale",
    mid: "sandbox-mid",
    tid: "sandbox-tid",
    recipient_iban: "UA213223130000026007233566001",
    subscription_id: "sub-1",
    fiscalization: {
      fiscal_id: rrn,
      fiscal_url: rest.receipt_url,
      status: "Success",
      status_code: 1000,
      status_description: "test result",
    },
  });
  const { token, ...card } = method.cc_token;
  assert.match(token, /^tok_/);
  assert.equal(method.type, "cc_number");
  assert.deepEqual(card, {
    bank_short_name: "SANDBOX",
    expires_at: "2036-02-29T23:59:59Z",
    mask: "555555******4444",
    payment_system: "mastercard",
    bin_country: "UA",
    saved_card: true,
  });
  assert.ok(!text.includes("5555555555554444"));
});

test("an amount keeps its exact digits", async (t) => {
  const { pay } = await startRig(t);
  for (const amount of ["10.10", "0.1", "99999999999.99", "5", "1.000000"]) {
    const raw = JSON.stringify(newPayment({ external_id: amount }));
    const { body } = await pay(raw.replace('"amount":10,', `"amount":${amount},`));
    assert.equal(body.details.amount, amount);
  }
});

test("an external_id accepts payment attempts until one succeeds", async (t) => {
  const { sandbox, pay } = await startRig(t);
  const declined = await pay(cardPayment("4000000000000614"));
  assert.equal(declined.body.code, "insufficient_funds");
  const again = await pay(cardPayment("4000000000000622"));
  assert.equal(again.body.code, "card_expired");
  assert.notEqual(again.body.payment_id, declined.body.payment_id);
  const paid = await pay(newPayment());
  assert.equal(paid.body.details.status, "success");
  const late = await pay(newPayment());
  assertRefused(late, 409, "transaction_already_paid");
  assert.equal(late.body.type, "payment_error");
  assert.equal(late.body.payment_id, paid.body.details.payment_id);
  const { payments } = sandbox.ledger();
  assert.equal(payments.length, 3);
  const ids = payments.map(({ operations }) => operations[0]?.operation_id);
  assert.equal(new Set(ids).size, 3);
});

test("of two open attempts only one can succeed", async (t) => {
  const { act, pay } = await startRig(t);
  const first = await pay(cardPayment("4000000000003014"));
  const second = await pay(cardPayment("4000000000003014"));
  const settled = await act(first, "settle", { status: "success" });
  assert.equal(settled.body.details.status, "success");
  const late = await act(second, "settle", { status: "success" });
  const { status, status_code } = late.body.details;
  const told = [status, status_code, late.body.is_success];
  assert.deepEqual(told, ["failure", "transaction_already_paid", false]);
});

test("a held payment is confirmed once, for no more than was held", async (t) => {
  const { confirm, receiver, pay } = await startShop(t);
  const held = await pay(newPayment({ confirm: false }));
  const { status, method, payment_id, operation_id } = held.body.details;
  assert.deepEqual([status, method], ["success", "hold"]);
  await receiver.next();
  const over = await confirm({ amount: 10.01 });
  assert.equal(over.body.code, "confirm_amount_cannot_be_more_than_the_transaction_amount");
  assert.equal((await confirm({ currency: "EUR" })).body.code, "invalid_currency");
  assert.equal((await confirm({ amount: "10" })).body.code, "wrong_amount");
  const { body } = await confirm({ amount: 7.5, currency: "UAH", payload: "later" });
  const details = { amount: "7.5", payload: "later", payment_id };
  assert.partialDeepStrictEqual(body, { operation: "confirm", details });
  assert.notEqual(body.details.operation_id, operation_id);
  assert.deepEqual((await receiver.next()).body, body);
  assertRefused(await confirm(), 409, "action_already_done");
});

test("a payment that was not held cannot be confirmed", async (t) => {
  const { confirm, pay } = await startRig(t);
  assert.equal((await confirm()).body.code, "transaction_not_found");
  await pay(newPayment());
  assert.equal((await confirm()).body.code, "action_already_done");
  await pay(cardPayment("4000000000000614", { external_id: "order-2" }));
  assert.equal((await confirm({ external_id: "order-2" })).body.code, "action_not_allowed");
});

test("a recurrent payment charges the card of its primary payment", async (t) => {
  const { call, receiver, pay } = await startShop(t);
  const primary = await pay(newPayment({ init_recurrent_payment: true }));
  await receiver.next();
  const { status, body } = await call("POST", paths.recurrent, {
    recurrent_id: primary.body.details.recurrent_id,
    external_id: "order-2",
    amount: 3,
    callback_url: receiver.url,
    payload: "month 2",
    subscription_id: "sub-1",
    delegate_api_key: "0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60",
  });
  assert.equal(status, 200);
  assert.partialDeepStrictEqual(body, {
    operation: "recurrent",
    details: { amount: "3", currency: "UAH", payload: "month 2", subscription_id: "sub-1" },
    payment_method: { cc_token: { mask: "411111******1111" } },
  });
  assert.notEqual(body.details.payment_id, primary.body.details.payment_id);
  assert.match(body.project_id, /^delegate-[0-9a-f]{8}$/);
  assert.deepEqual((await receiver.next()).body, body);
});

test("a delegated payment goes to the project of the key's owner", async (t) => {
  const { call, pay } = await startRig(t);
  const primary = await pay(newPayment({ init_recurrent_payment: true }));
  const { recurrent_id } = primary.body.details;
  const keys = ["0b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60", "1b6f5c0e-7a51-4a0e-9f4e-5d3b8c1a2f60"];
  const projectOf = async (external_id: string, delegate_api_key?: string) => {
    const request = { recurrent_id, external_id, amount: 3, delegate_api_key };
    const { body, text } = await call("POST", paths.recurrent, request);
    for (const key of keys) assert.ok(!text.includes(key.slice(0, 8)));
    return body.project_id;
  };
  assert.equal(await projectOf("own"), "sandbox");
  const one = await projectOf("a", keys[0]);
  assert.notEqual(one, "sandbox");
  assert.equal(await projectOf("b", keys[0]?.toUpperCase()), one);
  assert.notEqual(await projectOf("c", keys[1]), one);
});

test("a recurrent payment needs a successful primary one", async (t) => {
  const { call, pay } = await startRig(t);
  const recur = (recurrent_id: string) =>
    call("POST", paths.recurrent, { recurrent_id, external_id: "order-2", amount: 3 });
  const refused = await recur("nothing");
  assertRefused(refused, 404, "transaction_success_primary_not_found", "recurrent_id");
  const open = await pay(cardPayment("4000000000003014", { init_recurrent_payment: true }));
  const unpaid = await recur(open.body.details.recurrent_id);
  assert.equal(unpaid.body.code, "transaction_success_primary_not_found");
  const single = await pay(newPayment());
  const notRecurring = await recur(single.body.details.payment_id);
  assert.equal(notRecurring.body.code, "transaction_is_not_recurring");
});

test("a payment can use a card token, a wallet card or a device wallet", async (t) => {
  const rig = await startRig(t);
  const first = await rig.pay(newPayment());
  const { token, mask } = first.body.payment_method.cc_token;
  const pay = (external_id: string, payment_method: object, customer = {}) =>
    rig.pay(newPayment({ external_id, payment_method, customer }));

  const option_id = "6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01";
  const google = { pan: "5555555555554444", exp_month: 12, exp_year: 2035, cryptogram: "secret" };
  for (const [type, sent, shown] of [
    ["cc_token", { cc_token: { token } }, { cc_token: { mask } }],
    ["wallet", { wallet: { option_id } }, {}],
    ["apple_pay", { apple_pay: { token: "opaque" } }, { apple_pay: { payment_system: "visa" } }],
    ["google_pay", { decrypted_google_pay: google }, { google_pay: { mask: "555555******4444" } }],
  ] as const) {
    const { body } = await pay(type, { type, ...sent }, { external_id: "demo-customer" });
    const payment_method = { type, ...shown };
    assert.partialDeepStrictEqual(body, { details: { status: "success" }, payment_method }, type);
  }

  const decrypted = await pay("d", {
    type: "apple_pay",
    decrypted_apple_pay: {
      application_primary_account_number: "4000000000000614",
      application_expiration_date: "351231",
      online_payment_cryptogram: "secret",
      eci_indicator: null,
    },
  });
  assert.equal(decrypted.body.code, "insufficient_funds");
});

test("an unknown or unusable payment method is refused with the reason", async (t) => {
  const rig = await startRig(t);
  const pay = (payment_method: object, customer: object = { external_id: "demo-customer" }) =>
    rig.pay(newPayment({ payment_method, customer }));
  const wallet = (option_id: string) => ({ type: "wallet", wallet: { option_id } });

  const token = await pay({ type: "cc_token", cc_token: { token: "tok_unknown" } });
  const { code, type, param } = token.body;
  assert.deepEqual([code, type], ["invalid_card_token", "payment_method_error"]);
  assert.equal(param, "payment_method.cc_token.token");
  assert.ok(!token.text.includes("tok_unknown"));
  const refused = await pay(wallet("6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7aff"));
  assertRefused(refused, 404, "payment_method_not_found");
  const unconfirmed = await pay(wallet("6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a02"));
  assert.equal(unconfirmed.body.code, "card_verification_required");
  const nobody = await pay(wallet("6f1f3c52-0d0a-4b8e-8a53-1c2f4f0f7a01"), {});
  assert.equal(nobody.body.code, "customer_id_not_passed");
  assert.equal(nobody.body.type, "customer_error");
});

test("a card past its month is expired whatever its number", async (t) => {
  const { pay } = await startRig(t);
  const expired = await pay(newPayment({}, { exp_month: 1, exp_year: 2020 }));
  assertRefused(expired, 402, "card_expired");
  assert.equal(expired.body.type, "payment_method_error");
});

test("the ledger keeps the newest payments and forgets the oldest", async (t) => {
  const { confirm, sandbox, pay } = await startRig(t, { maxRecords: 2 });
  for (const external_id of ["a", "b", "c"]) await pay(newPayment({ external_id }));
  const kept = sandbox.ledger().payments.map(({ external_id }) => external_id);
  assert.deepEqual(kept, ["b", "c"]);
  assert.equal((await confirm({ external_id: "a" })).body.code, "transaction_not_found");
});

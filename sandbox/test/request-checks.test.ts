import assert from "node:assert/strict";
import { test } from "node:test";
import { newPayment, paths, startRig } from "./start.ts";

const cc = { number: "4111111111111111", cvv: "123", exp_month: 12, exp_year: 2035 };
const direct = newPayment();

/** What is wrong, the body, the expected `code` and the expected `param`. */
const wrongPayments: readonly (readonly [string, object, string, string])[] = [
  ["no amount", without(direct, "amount"), "invalid_request_body", "amount"],
  ["an amount in a string", { ...direct, amount: "10.00" }, "wrong_amount", "amount"],
  ["an amount of zero", { ...direct, amount: 0 }, "wrong_amount", "amount"],
  ["a negative amount", { ...direct, amount: -5 }, "wrong_amount", "amount"],
  ["too small a fraction", { ...direct, amount: 0.0000001 }, "wrong_amount", "amount"],
  ["no currency", without(direct, "currency"), "invalid_request_body", "currency"],
  ["an unknown currency", { ...direct, currency: "UAX" }, "invalid_currency", "currency"],
  ["no mode", without(direct, "mode"), "invalid_request_body", "mode"],
  ["an unknown mode", { ...direct, mode: "DIRECT" }, "invalid_request_body", "mode"],
  ["no external_id", without(direct, "external_id"), "invalid_request_body", "external_id"],
  ["an empty external_id", { ...direct, external_id: "" }, "invalid_request_body", "external_id"],
  ["a number for text", { ...direct, external_id: 7 }, "invalid_request_body", "external_id"],
  ["null for text", { ...direct, payload: null }, "invalid_request_body", "payload"],
  ["no customer in mode direct", without(direct, "customer"), "invalid_request_body", "customer"],
  ["no products", { ...direct, mode: "express_checkout" }, "invalid_request_body", "products"],
  ["text for a flag", { ...direct, confirm: "true" }, "invalid_request_body", "confirm"],
  ["no URL", { ...direct, callback_url: "shop/cb" }, "invalid_request_body", "callback_url"],
  ["a file URL", { ...direct, callback_url: "file:///x" }, "invalid_request_body", "callback_url"],
  [
    "a script URL",
    { ...direct, result_url: "javascript:alert(1)" },
    "invalid_request_body",
    "result_url",
  ],
  ["an unknown theme", { ...direct, color_mode: "blue" }, "invalid_request_body", "color_mode"],
  ["an unknown locale", { ...direct, locale: "en" }, "invalid_request_body", "locale"],
  [
    "no IPv4 address",
    { ...direct, customer: { ip_address: "::1" } },
    "invalid_request_body",
    "customer.ip_address",
  ],
  [
    "no e-mail address",
    { ...direct, customer: { email: "anna" } },
    "invalid_request_body",
    "customer.email",
  ],
  [
    "a long address",
    { ...direct, customer: { address: "x".repeat(51) } },
    "invalid_request_body",
    "customer.address",
  ],
  [
    "half a fingerprint",
    { ...direct, fingerprint: { browser_accept_header: "*/*" } },
    "invalid_request_body",
    "fingerprint.browser_color_depth",
  ],
  [
    "an unknown tax group",
    { ...direct, products: [{}, { tax_group: 10 }] },
    "invalid_request_body",
    "products[1].tax_group",
  ],
  [
    "a number for a decimal",
    { ...direct, products: [{ net_amount: 5 }] },
    "invalid_request_body",
    "products[0].net_amount",
  ],
  [
    "a recipient without payment method",
    { ...direct, recipient: { first_name: "Anna" } },
    "invalid_request_body",
    "recipient.payment_method",
  ],
  [
    "a recipient's method without its object",
    { ...direct, recipient: { payment_method: { type: "iban" } } },
    "invalid_request_body",
    "recipient.payment_method.iban",
  ],
  [
    "no payment method",
    without(direct, "payment_method"),
    "invalid_request_body",
    "payment_method",
  ],
  ["no type", pay({ cc }), "invalid_request_body", "payment_method.type"],
  ["an unknown type", pay({ type: "cash", cc }), "invalid_request_body", "payment_method.type"],
  [
    "another type's object",
    pay({ type: "cc_token", cc }),
    "invalid_request_body",
    "payment_method.cc_token",
  ],
  [
    "no CVV",
    pay({ type: "cc_number", cc: without(cc, "cvv") }),
    "invalid_request_body",
    "payment_method.cc.cvv",
  ],
  [
    "month 13",
    pay({ type: "card", cc: { ...cc, exp_month: 13 } }),
    "invalid_request_body",
    "payment_method.cc.exp_month",
  ],
  [
    "a month in a string",
    pay({ type: "cc_number", cc: { ...cc, exp_month: "12" } }),
    "invalid_request_body",
    "payment_method.cc.exp_month",
  ],
  [
    "a mistyped card number",
    pay({ type: "cc_number", cc: { ...cc, number: "4111111111111112" } }),
    "wrong_card_number",
    "payment_method.cc.number",
  ],
  [
    "no uuid",
    pay({ type: "wallet", wallet: { option_id: "1" } }),
    "invalid_request_body",
    "payment_method.wallet.option_id",
  ],
  [
    "no cryptogram",
    pay({ type: "google_pay", decrypted_google_pay: { pan: cc.number } }),
    "invalid_request_body",
    "payment_method.decrypted_google_pay.cryptogram",
  ],
];

test("a payment request that breaks the spec is refused with the field's path", async (t) => {
  const { call, sandbox } = await startRig(t);
  for (const [what, request, code, param] of wrongPayments) {
    const { status, body, text } = await call("POST", paths.new, request);
    assert.equal(status, 400, what);
    assert.equal(body.code, code, what);
    assert.equal(body.param, param, what);
    assert.ok(!text.includes("41111111"), what);
  }
  assert.deepEqual(sandbox.ledger().payments, []);
});

test("in the hosted modes the payment method's type alone is enough", async (t) => {
  const { call } = await startRig(t);
  const hosted = { ...direct, mode: "hosted", payment_method: { type: "card" } };
  assert.equal((await call("POST", paths.new, without(hosted, "customer"))).status, 200);
  const express = { ...hosted, mode: "express_checkout", products: [{ name: "Book" }] };
  assert.equal((await call("POST", paths.new, express)).status, 200);
});

test("an address is limited to 50 characters, not UTF-16 units", async (t) => {
  const { call } = await startRig(t);
  const request = { ...direct, customer: { address: "😀".repeat(50) } };
  assert.equal((await call("POST", paths.new, request)).status, 200);
});

test("the other payments calls are checked too", async (t) => {
  const { call } = await startRig(t);
  const recurrent = { recurrent_id: "r", external_id: "o", amount: 5 };
  const wrong: readonly (readonly [string, object, string, string])[] = [
    [paths.recurrent, without(recurrent, "recurrent_id"), "invalid_request_body", "recurrent_id"],
    [paths.recurrent, without(recurrent, "external_id"), "invalid_request_body", "external_id"],
    [paths.recurrent, without(recurrent, "amount"), "invalid_request_body", "amount"],
    [paths.recurrent, { ...recurrent, amount: "5" }, "wrong_amount", "amount"],
    [
      paths.recurrent,
      { ...recurrent, delegate_api_key: "key" },
      "invalid_request_body",
      "delegate_api_key",
    ],
    [paths.confirm, {}, "invalid_request_body", "external_id"],
    [paths.resend, {}, "invalid_request_body", "external_id"],
  ];
  for (const [path, request, code, param] of wrong) {
    const { status, body } = await call("POST", path, request);
    assert.deepEqual([status, body.code, body.param], [400, code, param]);
  }
});

function pay(payment_method: object): object {
  return { ...direct, payment_method };
}

function without(body: object, name: string): object {
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== name));
}

test("the values of a fingerprint may be empty", async (t) => {
  const { call } = await startRig(t);
  const names = ["accept_header", "color_depth", "ip_address", "java_enabled", "language"];
  names.push("screen_height", "screen_width", "time_zone", "time_zone_offset", "user_agent");
  const fingerprint = Object.fromEntries(names.map((name) => [`browser_${name}`, ""]));
  const { status } = await call("POST", paths.new, { ...direct, fingerprint });
  assert.equal(status, 200);
});

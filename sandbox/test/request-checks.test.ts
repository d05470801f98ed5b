import assert from "node:assert/strict";
import { test } from "node:test";
import { assertRefused, newPayment, paths, startRig } from "./start.ts";

const cc = { number: "4111111111111111", cvv: "123", exp_month: 12, exp_year: 2035 };
const direct = newPayment();

/** What is wrong, the body, the expected `param`, and the `code` if it is no invalid_request_body. */
type Wrong = readonly [what: string, request: object, param: string, code?: string];

const wrongPayments: readonly Wrong[] = [
  ["no amount", without(direct, "amount"), "amount"],
  ["an amount in a string", { ...direct, amount: "10.00" }, "amount", "wrong_amount"],
  ["an amount of zero", { ...direct, amount: 0 }, "amount", "wrong_amount"],
  ["a negative amount", { ...direct, amount: -5 }, "amount", "wrong_amount"],
  ["too small a fraction", { ...direct, amount: 0.0000001 }, "amount", "wrong_amount"],
  ["no currency", without(direct, "currency"), "currency"],
  ["an unknown currency", { ...direct, currency: "UAX" }, "currency", "invalid_currency"],
  ["no mode", without(direct, "mode"), "mode"],
  ["an unknown mode", { ...direct, mode: "DIRECT" }, "mode"],
  ["no external_id", without(direct, "external_id"), "external_id"],
  ["an empty external_id", { ...direct, external_id: "" }, "external_id"],
  ["a number for text", { ...direct, external_id: 7 }, "external_id"],
  ["null for text", { ...direct, payload: null }, "payload"],
  ["no customer in mode direct", without(direct, "customer"), "customer"],
  ["no products", { ...direct, mode: "express_checkout" }, "products"],
  ["text for a flag", { ...direct, confirm: "true" }, "confirm"],
  ["no URL", { ...direct, callback_url: "shop/cb" }, "callback_url"],
  ["a file URL", { ...direct, callback_url: "file:///x" }, "callback_url"],
  ["a script URL", { ...direct, result_url: "javascript:alert(1)" }, "result_url"],
  ["an unknown theme", { ...direct, color_mode: "blue" }, "color_mode"],
  ["an unknown locale", { ...direct, locale: "en" }, "locale"],
  ["no IPv4 address", { ...direct, customer: { ip_address: "::1" } }, "customer.ip_address"],
  ["no e-mail address", { ...direct, customer: { email: "anna" } }, "customer.email"],
  ["a long address", { ...direct, customer: { address: "x".repeat(51) } }, "customer.address"],
  [
    "half a fingerprint",
    { ...direct, fingerprint: { browser_accept_header: "*/*" } },
    "fingerprint.browser_color_depth",
  ],
  [
    "an unknown tax group",
    { ...direct, products: [{}, { tax_group: 10 }] },
    "products[1].tax_group",
  ],
  [
    "a number for a decimal",
    { ...direct, products: [{ net_amount: 5 }] },
    "products[0].net_amount",
  ],
  [
    "a recipient without payment method",
    { ...direct, recipient: { first_name: "Anna" } },
    "recipient.payment_method",
  ],
  [
    "a recipient's method without its object",
    { ...direct, recipient: { payment_method: { type: "iban" } } },
    "recipient.payment_method.iban",
  ],
  ["no payment method", without(direct, "payment_method"), "payment_method"],
  ["no type", pay({ cc }), "payment_method.type"],
  ["an unknown type", pay({ type: "cash", cc }), "payment_method.type"],
  ["another type's object", pay({ type: "cc_token", cc }), "payment_method.cc_token"],
  ["no CVV", pay({ type: "cc_number", cc: without(cc, "cvv") }), "payment_method.cc.cvv"],
  ["month 13", pay({ type: "card", cc: { ...cc, exp_month: 13 } }), "payment_method.cc.exp_month"],
  [
    "a month in a string",
    pay({ type: "cc_number", cc: { ...cc, exp_month: "12" } }),
    "payment_method.cc.exp_month",
  ],
  [
    "a mistyped card number",
    pay({ type: "cc_number", cc: { ...cc, number: "4111111111111112" } }),
    "payment_method.cc.number",
    "wrong_card_number",
  ],
  [
    "no uuid",
    pay({ type: "wallet", wallet: { option_id: "1" } }),
    "payment_method.wallet.option_id",
  ],
  [
    "no cryptogram",
    pay({ type: "google_pay", decrypted_google_pay: { pan: cc.number } }),
    "payment_method.decrypted_google_pay.cryptogram",
  ],
];

test("a payment request that breaks the spec is refused with the field's path", async (t) => {
  const { call, sandbox } = await startRig(t);
  for (const [what, request, param, code = "invalid_request_body"] of wrongPayments) {
    const answer = await call("POST", paths.new, request);
    assertRefused(answer, 400, code, param);
    assert.ok(!answer.text.includes("41111111"), what);
  }
  assert.deepEqual(sandbox.ledger().payments, []);
});

test("what the spec leaves open is accepted", async (t) => {
  const { call } = await startRig(t);
  const hosted = { ...direct, mode: "hosted", payment_method: { type: "card" } };
  const express = { ...hosted, mode: "express_checkout", products: [{ name: "Book" }] };
  const names = ["accept_header", "color_depth", "ip_address", "java_enabled", "language"];
  names.push("screen_height", "screen_width", "time_zone", "time_zone_offset", "user_agent");
  const fingerprint = Object.fromEntries(names.map((name) => [`browser_${name}`, ""]));
  for (const [what, request] of [
    ["in mode hosted the payment method's type alone", { ...hosted, customer: undefined }],
    ["in mode express_checkout the payment method's type alone", express],
    ["an address of 50 characters, not UTF-16 units", { customer: { address: "😀".repeat(50) } }],
    ["empty values of a fingerprint", { fingerprint }],
  ] as const) {
    const payment = { ...direct, ...request, external_id: what };
    assert.equal((await call("POST", paths.new, payment)).status, 200, what);
  }
});

test("the other payments calls are checked too", async (t) => {
  const { call } = await startRig(t);
  const recurrent = { recurrent_id: "r", external_id: "o", amount: 5 };
  const wrong: readonly Wrong[] = [
    [paths.recurrent, without(recurrent, "recurrent_id"), "recurrent_id"],
    [paths.recurrent, without(recurrent, "external_id"), "external_id"],
    [paths.recurrent, without(recurrent, "amount"), "amount"],
    [paths.recurrent, { ...recurrent, amount: "5" }, "amount", "wrong_amount"],
    [paths.recurrent, { ...recurrent, delegate_api_key: "key" }, "delegate_api_key"],
    [paths.confirm, {}, "external_id"],
    [paths.resend, {}, "external_id"],
  ];
  for (const [path, request, param, code = "invalid_request_body"] of wrong) {
    assertRefused(await call("POST", path, request), 400, code, param);
  }
});

function pay(payment_method: object): object {
  return { ...direct, payment_method };
}

function without(body: object, name: string): object {
  return Object.fromEntries(Object.entries(body).filter(([key]) => key !== name));
}

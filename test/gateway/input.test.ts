import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { beforeEach, test } from "node:test";
import { ofSuite } from "../of-suite.ts";
import { startBefore } from "../start.ts";

/** Requests that reached the upstream, which answers a payment with the amount that it received. */
const received: { url: string; body: string }[] = [];
const upstream = createServer(async (request, response) => {
  const body = await text(request);
  received.push({ url: request.url ?? "", body });
  const amount = /"amount":(-?[0-9.]+)/.exec(body)?.[1] ?? "0";
  const externalId = /"external_id":"([^"]*)"/.exec(body)?.[1];
  response.setHeader("content-type", "application/json");
  response.setHeader("x-ratelimit-limit", "1000000");
  response.end(
    `{"external_id":"${externalId}","details":{"payment_id":"p-${externalId}","status":"success","amount":${amount}}}`,
  );
});

const gateway = ofSuite(() =>
  startBefore(upstream, { AUTH_MODE: "none", RATE_LIMIT_INITIAL: "1000000" }, "/base/"),
);
beforeEach(() => {
  received.length = 0;
});

const card = { cvv: "123", exp_month: 12, exp_year: 2031, number: "4111111111111111" };
const good = {
  amount: "10.10",
  currency: "UAH",
  mode: "PAYMENT_MODE_DIRECT",
  external_id: "order",
  customer: { email: "a@b.example" },
  payment_method: { cc: card },
};
const browser = {
  browser_accept_header: "",
  browser_color_depth: "24",
  browser_ip_address: "127.0.0.1",
  browser_java_enabled: "",
  browser_language: "uk",
  browser_screen_height: "900",
  browser_screen_width: "1600",
  browser_time_zone: "",
  browser_time_zone_offset: "",
  browser_user_agent: "",
};
const again = { recurrent_id: "r", external_id: "e", amount: "1" };
const uuid = "7b0f0f5e-3a53-4d3e-8a6e-0d6b2f6b1a11";

const ofCard = { payout_type: "card", payer: { entity_id: "1" } };
const order = { currency: "UAH", description: "d", external_id: "e", original_amount: "1.0" };
const person = { first_name: "A", last_name: "B" };
const payoutTo = (of: object) => ({ ...ofCard, order, recipient: { card: { ...person, ...of } } });

type Refusal = [request: object, fields: string[]];

/** What is wrong with a request for a payment, in which all else is good, and the fields told. */
const payments: Refusal[] = [
  [{ amount: "1e3" }, ["amount"]],
  [{ amount: "1".repeat(900_000) }, ["amount"]],
  [{ customer: undefined }, ["customer"]],
  [{ payment_method: { type: "PAYMENT_METHOD_TYPE_CARD" } }, ["payment_method.method"]],
  [{ payment_method: {} }, ["payment_method.type", "payment_method.method"]],
  [{ payment_method: { type: "PAYMENT_METHOD_TYPE_WALLET", cc: card } }, ["payment_method.type"]],
  [{ payment_method: { cc: { ...card, exp_month: 13 } } }, ["payment_method.cc.exp_month"]],
  [{ payment_method: { cc: { ...card, number: "4111-1111" } } }, ["payment_method.cc.number"]],
  [{ payment_method: { wallet: { option_id: "1" } } }, ["payment_method.wallet.option_id"]],
  [
    { payment_method: { decrypted_google_pay: {} } },
    ["pan", "exp_month", "exp_year", "cryptogram"].map(
      (name) => `payment_method.decrypted_google_pay.${name}`,
    ),
  ],
  [{ mode: "PAYMENT_MODE_EXPRESS_CHECKOUT" }, ["products"]],
  [
    { products: [{}, { quantity: "many", tax_group: 10 }] },
    ["products[1].quantity", "products[1].tax_group"],
  ],
  [{ products: [{ net_amount: "" }] }, ["products[0].net_amount"]],
  [{ products: [{}, { id: "x".repeat(256), net_amount: "no" }] }, ["products[1].id"]],
  [
    { customer: { address: "x".repeat(51), ip_address: "::1", email: "me", locale: "uk" } },
    ["customer.locale", "customer.ip_address", "customer.address", "customer.email"],
  ],
  [{ callback_url: "ftp://a", result_url: "/done" }, ["callback_url", "result_url"]],
  [{ callback_url: "", result_url: "" }, ["callback_url", "result_url"]],
  [{ callback_url: "myshop://cb" }, ["callback_url"]],
  [{ result_url: "javascript:alert(1)" }, ["result_url"]],
  [{ result_url: "DATA:,x" }, ["result_url"]],
  [{ result_url: "https:done" }, ["result_url"]],
  [{ external_id: "x".repeat(256) }, ["external_id"]],
  [{ description: "x".repeat(4097) }, ["description"]],
  [
    { fingerprint: { browser_language: "uk" } },
    Object.keys(browser)
      .filter((name) => name !== "browser_language")
      .map((name) => `fingerprint.${name}`),
  ],
  [{ recipient: { address: "x".repeat(51) } }, ["recipient.address", "recipient.payment_method"]],
  [
    {
      recipient: {
        payment_method: { type: "RECIPIENT_PAYMENT_METHOD_TYPE_WALLET", iban: { iban: "UA1" } },
      },
    },
    ["recipient.payment_method.type"],
  ],
];

/** Requests by their method, and the fields that each is refused for. */
const refusals: Readonly<Record<string, Refusal[]>> = {
  "PaymentService/CreatePayment": [
    [{}, ["amount", "currency", "mode", "external_id", "payment_method"]],
    ...payments.map(([change, fields]): Refusal => [{ ...good, ...change }, fields]),
  ],
  "PaymentService/CreateRecurrentPayment": [
    [{ ...again, callback_url: "" }, ["callback_url"]],
    [{ amount: "1", delegate_api_key: "k" }, ["recurrent_id", "external_id", "delegate_api_key"]],
  ],
  "PaymentService/ConfirmPayment": [
    [{ external_id: "e", callback_url: "" }, ["callback_url"]],
    [{ amount: "x" }, ["external_id", "amount"]],
  ],
  "PaymentService/ResendCallback": [[{}, ["external_id"]]],
  "PaymentService/GetPayment": [
    [{}, ["external_id"]],
    [{ external_id: "\u044f".repeat(128) }, ["external_id"]],
  ],
  "PayoutService/RequestPayout": [
    [{ payout_type: "card", recipient: {} }, ["order", "payer", "recipient.card"]],
    [
      {
        ...{ ...ofCard, payout_type: "cash", recipient: { card: person } },
        order: { ...order, original_amount: "1,0" },
      },
      ["order.original_amount", "recipient.cash"],
    ],
    [
      payoutTo({ card_data: { number: card.number, token: "t" } }),
      ["recipient.card.card_data.token"],
    ],
    [
      payoutTo({ rid: "r", card_data: {} }),
      ["recipient.card.rid", "recipient.card.card_data.number"],
    ],
  ],
  "PayoutService/GetPayout": [[{}, ["external_id"]]],
  "WalletService/FindWalletItems": [
    [{}, ["customer"]],
    [{ customer: { rid: uuid } }, ["customer.rid"]],
    [{ customer: { auth_token: "a b" } }, ["customer.auth_token"]],
    [{ customer: {} }, ["customer"]],
  ],
  "WalletService/GetConfirmationStatus": [
    [{ customer: {}, option_id: "" }, ["customer", "option_id"]],
  ],
  "WalletService/DeleteWalletItem": [
    [{ customer: { external_id: "c" }, option_id: "1" }, ["option_id", "type"]],
  ],
  "SubscriptionService/UpdateSubscription": [[{ subscription_id: "../../x" }, ["subscription_id"]]],
  "SubscriptionService/DeactivateSubscription": [
    [{ customer: { rid: "r" } }, ["subscription_id", "customer.rid"]],
  ],
  "OperationService/GetOperation": [[{}, ["external_id", "operation_id"]]],
  "EventService/ListEvents": [[{ page_size: -1 }, ["external_id", "kind", "page_size"]]],
  "EventService/CreateWatchToken": [
    [{ ttl_seconds: 86401 }, ["external_id", "kind", "ttl_seconds"]],
  ],
};

for (const [method, requests] of Object.entries(refusals)) {
  for (const [request, fields] of requests) {
    test(`${method} refuses ${fields.join(", ")} before anything is sent`, async () => {
      const { status, json } = await rpc(method, request);
      assert.equal(status, 400);
      assert.equal(json.code, "invalid_argument");
      const badRequest = json.details?.find(({ type }) => type === "google.rpc.BadRequest");
      const named = badRequest?.debug?.fieldViolations?.map(({ field }) => field);
      assert.deepEqual(named?.toSorted(), fields.toSorted());
      assert.equal(received.length, 0);
      assert.ok(!JSON.stringify(json).includes(card.number), "a refused value is not echoed");
    });
  }
}

test("control: the valid request is sent, so the refusals are due to the fields they name", async () => {
  const { status } = await rpc("PaymentService/CreatePayment", good);
  assert.equal(status, 200);
  assert.equal(received[0]?.url, "/base/api/payments/v1/new");
  assert.deepEqual(JSON.parse(received[0]?.body ?? ""), {
    amount: 10.1,
    currency: "UAH",
    mode: "direct",
    external_id: "order",
    callback_url: `${gateway.publicUrl}/callbacks/default/payments`,
    customer: { email: "a@b.example" },
    payment_method: { type: "cc_number", cc: card },
  });
});

test("a result_url may be a page or a link into an app", async () => {
  const links = ["https://shop.example/done?order=1", "myshop://done", "com.shop.app:/done"];
  for (const result_url of links) {
    const { status } = await rpc("PaymentService/CreatePayment", { ...good, result_url });
    assert.equal(status, 200, result_url);
    assert.equal(JSON.parse(received.pop()?.body ?? "").result_url, result_url);
  }
});

test("values that the spec allows are sent: long ids, empty values, short card numbers", async () => {
  const request = {
    ...good,
    external_id: "x".repeat(255),
    payment_method: { cc: { ...card, number: "41111111" } },
    fingerprint: browser,
  };
  const { status } = await rpc("PaymentService/CreatePayment", request);
  assert.equal(status, 200);
  const sent = JSON.parse(received[0]?.body ?? "");
  assert.equal(sent.external_id, request.external_id);
  assert.equal(sent.payment_method.cc.number, "41111111");
  assert.deepEqual(sent.fingerprint, browser);
});

interface Json {
  code?: string;
  details?: { type: string; debug?: { fieldViolations?: { field: string }[] } }[];
  payment?: { details?: { amount?: string } };
}

async function rpc(method: string, request: object): Promise<{ status: number; json: Json }> {
  const response = await fetch(`${gateway.rpcUrl}/payments.v1.${method}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(request),
  });
  return { status: response.status, json: (await response.json()) as Json };
}

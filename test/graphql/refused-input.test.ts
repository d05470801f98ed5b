import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { validate } from "../../src/core/validate.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { serve } from "./serve.ts";

test("refused fields are named by their paths in the input", async (t) => {
  const gateway = await serve(t, {
    createPayment: async (request) => {
      validate(CreatePaymentRequestSchema, request);
      return create(PaymentSchema);
    },
  });
  const refused = async (input: Record<string, unknown>) => {
    const { data } = await gateway.run(
      `mutation($input: CreatePaymentInput!) { createPayment(input: $input) {
        ... on InvalidInputError { message fields { path message } }
      } }`,
      { input: { amount: "1", currency: "EUR", externalId: "e", mode: "DIRECT", ...input } },
    );
    return data.createPayment.fields.map(({ path }: { path: string }) => path).sort();
  };
  assert.deepEqual(
    await refused({
      amount: "1.2345678",
      resultUrl: "shop",
      ipAddress: "::1",
      customer: { email: "nobody", address: "x".repeat(51) },
      paymentMethod: {
        method: { cc: { number: "4111", cvv: "1", expMonth: 13, expYear: 2030 } },
      },
      products: [{ netAmount: "1" }, { netAmount: "1e3", taxGroup: 10 }],
    }),
    [
      "amount",
      "customer.address",
      "customer.email",
      "ipAddress",
      "paymentMethod.method.cc.cvv",
      "paymentMethod.method.cc.expMonth",
      "paymentMethod.method.cc.number",
      "products[1].netAmount",
      "products[1].taxGroup",
      "resultUrl",
    ],
  );
  assert.deepEqual(await refused({ paymentMethod: { type: "WALLET" } }), [
    "customer",
    "paymentMethod.method",
  ]);
  assert.deepEqual(
    await refused({
      mode: "HOSTED",
      paymentMethod: {
        type: "WALLET",
        method: { cc: { number: "4111111111111111", cvv: "123", expMonth: 1, expYear: 2030 } },
      },
      recipient: { paymentMethod: { type: "IBAN", method: { wallet: { optionId: "no uuid" } } } },
    }),
    [
      "paymentMethod.type",
      "recipient.paymentMethod.method.wallet.optionId",
      "recipient.paymentMethod.type",
    ],
  );
  assert.deepEqual(await refused({ mode: "EXPRESS_CHECKOUT", paymentMethod: {} }), [
    "paymentMethod.type",
    "products",
  ]);
});

test("input of the wrong shape never reaches the core", async (t) => {
  const gateway = await serve(t);
  const cases: [query: string, variables: unknown][] = [
    [
      `query($c: CustomerInput) { walletItems(customer: $c) { name } }`,
      { c: { authToken: "a", externalId: "b" } },
    ],
    [`query($c: CustomerInput) { walletItems(customer: $c) { name } }`, { c: {} }],
    [`query($c: CustomerInput) { walletItems(customer: $c) { name } }`, { c: { authToken: null } }],
    [`query($c: CustomerInput) { walletItems(customer: $c) { name } }`, { c: { rid: "r" } }],
    [`query($a: String!) { walletItems(customer: {authToken: $a}) { name } }`, { a: null }],
    [`query($a: String) { walletItems(customer: {authToken: $a}) { name } }`, {}],
    [`{ walletItems(customer: {authToken: "a", externalId: "b"}) { name } }`, {}],
    [`{ payment { id } }`, {}],
    [
      `mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }`,
      { i: { externalId: "e", callbackUrl: "https://x.example" } },
    ],
    [
      `mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }`,
      { i: { externalId: "e", amount: 10.1 } },
    ],
    [
      `mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }`,
      { i: { externalId: "e", amount: 2 ** 53 } },
    ],
    [
      `mutation { resendCallback(input: {externalId: "e", operation: UNSPECIFIED}) { __typename } }`,
      {},
    ],
    [`subscription { events(kinds: [UNSPECIFIED]) { cursor } }`, {}],
  ];
  for (const [query, variables] of cases) {
    const { errors } = await gateway.run(query, variables);
    assert.ok(errors, query);
    assert.match(errors[0].extensions.code, /^(BAD_USER_INPUT|GRAPHQL_VALIDATION_FAILED)$/);
  }
  assert.deepEqual(gateway.seen(), []);
});

test("no answer and no log record repeats a refused value", async (t) => {
  const gateway = await serve(t);
  const card = `{number: "CANARY", cvv: "CANARY", expMonth: 1, expYear: 2030`;
  const payment = (method: string, rest = "") => `mutation { createPayment(input: {
    amount: "1", currency: "EUR", mode: HOSTED, externalId: "e", paymentMethod: ${method} ${rest}
  }) { __typename } }`;
  const byVariable = `mutation($i: CreatePaymentInput!) { createPayment(input: $i) { __typename } }`;
  const bodies: unknown[] = [
    { query: payment(`{method: {cc: ${card}, extra: "CANARY"}}}`) },
    { query: payment(`{method: {cc: {number: "CANARY"}}}`) },
    { query: payment(`{method: {cc: ${card}}, wallet: {optionId: "CANARY"}}}`) },
    { query: payment(`{method: "CANARY"}`) },
    { query: payment(`{type: "CANARY"}`) },
    { query: payment(`{type: CANARY}`) },
    { query: payment(`{type: CARD}`, `amount: CANARY`) },
    { query: payment(`{type: CARD}`, `confirm: "CANARY"`) },
    { query: payment(`{method: {cc: {number: ["CANARY"], cvv: {a: "CANARY"}}}}`) },
    { query: `mutation { createPayment("CANARY") }` },
    { query: `mutation { createPayment(input: "CANARY" "CANARY` },
    { query: `{ payment(externalId: {a: "CANARY"}) { id } }` },
    { query: `{ payment(externalId: "e") { events(first: "CANARY") { cursor } } }` },
    `{"query": "CANARY`,
    `{"query": "{ rateLimit { limit } }", "variables": CANARY}`,
    { query: byVariable, variables: { i: "CANARY" } },
    { query: byVariable, variables: { i: ["CANARY"] } },
    {
      query: byVariable,
      variables: { i: { paymentMethod: { method: { cc: { number: "CANARY" } } } } },
    },
    {
      query: byVariable,
      variables: { i: { amount: { a: "CANARY" }, mode: "CANARY", confirm: "CANARY" } },
    },
    { query: byVariable, variables: { i: { mode: ["CANARY"], externalId: { a: "CANARY" } } } },
    // Names that are almost right, of which GraphQL makes a suggestion before it quotes the whole.
    { query: byVariable, variables: { i: { amout: "1", externalId: "CANARY" } } },
    { query: payment(`{type: CARD}`, `amout: "CANARY"`) },
    { query: byVariable, variables: { i: { "1CANARY": "1" } } },
    {
      query: byVariable,
      variables: { i: { 'x at "y"; found: ': "CANARY", amount: 'CANARY at "CANARY"; CANARY' } },
    },
  ];
  for (const body of bodies) {
    const response = await gateway.post(body);
    const text = await response.text();
    assert.ok(JSON.parse(text).errors.length > 0, text);
    assert.doesNotMatch(text, /CANARY/);
  }
  const got = await fetch(`${gateway.url}?query={rateLimit{limit}}&variables=CANARY`);
  assert.equal(got.status, 400);
  assert.doesNotMatch(await got.text(), /CANARY/);
  assert.doesNotMatch(gateway.logged(), /CANARY/);
  assert.deepEqual(gateway.seen(), []);
});

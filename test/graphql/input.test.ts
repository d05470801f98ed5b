import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { validate } from "../../src/core/validate.ts";
import { GatewayError } from "../../src/errors.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { RequestPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { FindWalletItemsRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { graphqlSpelling } from "../../src/graphql/errors.ts";
import { toInputPath } from "../../src/graphql/schema/input.ts";
import { answeredPayment } from "../core/answers.ts";
import { type Answer, serve } from "./serve.ts";
import { firstResult, socketClient } from "./socket.ts";

const decimals = fc.stringMatching(/^-?\d{1,9}(\.\d{1,6})?$/);

test("a decimal keeps its text to the core and back, as a variable and in the query", async (t) => {
  const gateway = await serve(t, {
    confirmPayment: async ({ amount }) =>
      answeredPayment({ details: amount === undefined ? {} : { amount } }),
  });
  const selection = "{ ... on Payment { details { amount } } }";
  await fc.assert(
    fc.asyncProperty(decimals, async (amount) => {
      const byVariable = await gateway.run(
        `mutation($a: Decimal) { confirmPayment(input: {externalId: "e", amount: $a}) ${selection} }`,
        { a: amount },
      );
      assert.equal(byVariable.data.confirmPayment.details.amount, amount);
      const inQuery = await gateway.run(
        `mutation { confirmPayment(input: {externalId: "e", amount: "${amount}"}) ${selection} }`,
      );
      assert.equal(inQuery.data.confirmPayment.details.amount, amount);
    }),
    { numRuns: 100 },
  );
  for (const amount of ["10.10", "0.1", "99999999999.99", "-0", "1e3", "123456789012345678"]) {
    const { data } = await gateway.run(
      `mutation { confirmPayment(input: {externalId: "e", amount: ${amount}}) ${selection} }`,
    );
    assert.equal(data.confirmPayment.details.amount, amount);
  }
});

test("a decimal variable that is a JSON number is accepted only if it is a safe integer", async (t) => {
  const gateway = await serve(t, {
    confirmPayment: async ({ amount }) => answeredPayment({ id: amount ?? "" }),
  });
  const run = (a: unknown) =>
    gateway.run(
      `mutation($a: Decimal) { confirmPayment(input: {externalId: "e", amount: $a}) { ... on Payment { id } } }`,
      { a },
    );
  assert.equal((await run(10)).data.confirmPayment.id, "10");
  for (const amount of [10.1, 2 ** 53, true, ["1"], { a: "1" }]) {
    assert.equal((await run(amount)).errors[0].extensions.code, "BAD_USER_INPUT");
  }
});

test("a field path of a proto request is translated to the path in its GraphQL input", () => {
  const paths: [Parameters<typeof toInputPath>[0], string, string][] = [
    [CreatePaymentRequestSchema, "amount", "amount"],
    [CreatePaymentRequestSchema, "payment_method.cc.exp_month", "paymentMethod.method.cc.expMonth"],
    [CreatePaymentRequestSchema, "payment_method.method", "paymentMethod.method"],
    [CreatePaymentRequestSchema, "payment_method.type", "paymentMethod.type"],
    [CreatePaymentRequestSchema, "products[12].net_amount", "products[12].netAmount"],
    [
      CreatePaymentRequestSchema,
      "recipient.payment_method.cc_number.number",
      "recipient.paymentMethod.method.ccNumber.number",
    ],
    [RequestPayoutRequestSchema, "order.original_amount", "order.originalAmount"],
    [
      RequestPayoutRequestSchema,
      "recipient.card.card_data.number",
      "recipient.card.cardData.number",
    ],
    [FindWalletItemsRequestSchema, "customer.auth_token", "customer.authToken"],
    [FindWalletItemsRequestSchema, "customer.external_id", "customer.externalId"],
    // Not a field: the path of an error about an invalid Idempotency-Key, for example.
    [CreatePaymentRequestSchema, "idempotency-key", "idempotency-key"],
    [CreatePaymentRequestSchema, "", ""],
  ];
  for (const [desc, path, expected] of paths) assert.equal(toInputPath(desc, path), expected);
});

test("messages about refused fields use the names of GraphQL, not of the proto", async (t) => {
  const gateway = await serve(t, {
    createPayment: async (request) => {
      validate(CreatePaymentRequestSchema, request);
      return answeredPayment();
    },
    findWalletItems: async (request) => {
      validate(FindWalletItemsRequestSchema, request);
      return [];
    },
  });
  const wallet = await gateway.run("{ walletItems(customer: {}) { name } }");
  assert.equal(
    wallet.errors[0].message,
    "customer: must tell who the customer is: give authToken or externalId",
  );
  const { data } = await gateway.run(
    `mutation { createPayment(input: {
      amount: "1", currency: "EUR", externalId: "", mode: EXPRESS_CHECKOUT, description: ""
      paymentMethod: {method: {cc: {number: "4111111111111111", cvv: "123", expMonth: 13, expYear: 2030}}}
    }) { ... on InvalidInputError { message fields { path message } } } }`,
  );
  const { message, fields } = data.createPayment;
  assert.equal(
    message,
    fields
      .map((field: { path: string; message: string }) => `${field.path}: ${field.message}`)
      .join("; "),
  );
  assert.match(message, /externalId: .*paymentMethod\.method\.cc\.expMonth: /);
  assert.match(message, /is required in mode express_checkout/);
  assert.doesNotMatch(message, /external_id|payment_method|net_amount/);
  assert.equal(graphqlSpelling("after_cursor or page_token"), "after or after");
});

test("input of the wrong shape never reaches the core", async (t) => {
  const gateway = await serve(t);
  const cases: [query: string, variables: unknown][] = [
    [`query($c: CustomerInput) { walletItems(customer: $c) { name } }`, { c: { rid: "r" } }],
    [`query($a: String!) { walletItems(customer: {authToken: $a}) { name } }`, { a: null }],
    [`{ payment { id } }`, {}],
    [
      `mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }`,
      { i: { externalId: "e", callbackUrl: "https://x.example" } },
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

test("a literal that a scalar refuses is told with its place in the query", async (t) => {
  const gateway = await serve(t);
  for (const [query, literal, message] of [
    ['{ payments(filter: {firstSeenAfter: "x"}) { edges { cursor } } }', '"x"', /^DateTime takes/],
    [
      'mutation { confirmPayment(input: {externalId: "e", amount: true}) { __typename } }',
      "true",
      /^Decimal takes a string/,
    ],
    [
      'mutation { deleteWalletItem(input: {type: "card", optionId: 5}) { __typename } }',
      "5",
      /^UUID takes a string/,
    ],
  ] as const) {
    const { errors } = await gateway.run(query);
    assert.match(errors[0].message, message);
    assert.deepEqual(errors[0].locations, [{ line: 1, column: query.indexOf(literal) + 1 }]);
  }
});

test("half of a surrogate pair is refused with the path in its variable", async (t) => {
  const gateway = await serve(t);
  const half = "pay \ud83d";
  const cases: [query: string, variables: Record<string, unknown>, path: string][] = [
    ["query($id: ID!) { payment(externalId: $id) { id } }", { id: half }, ""],
    ["query($ids: String) { walletItems(optionId: $ids) { name } }", { ids: half }, ""],
    [
      "mutation($i: ConfirmPaymentInput!) { confirmPayment(input: $i) { __typename } }",
      { i: { externalId: "e", payload: half } },
      " at .payload",
    ],
    [
      "subscription($k: [EventKind!]) { events(kinds: $k) { cursor } }",
      { k: ["PAYMENT", half] },
      " at [1]",
    ],
    ["subscription($a: String) { events(after: $a) { cursor } }", { a: half }, ""],
  ];
  for (const [query, variables, path] of cases) {
    const { data, errors } = await gateway.run(query, variables);
    assert.equal(data, undefined);
    assert.equal(errors.length, 1, JSON.stringify(errors));
    assert.equal(errors[0].extensions.code, "BAD_USER_INPUT");
    const [name] = Object.keys(variables);
    const beginning = `Variable "$${name}" has invalid value${path}: half of a surrogate pair `;
    assert.ok(errors[0].message.startsWith(beginning), errors[0].message);
  }
  assert.deepEqual(gateway.seen(), []);
  assert.doesNotMatch(gateway.logged(), /INTERNAL_SERVER_ERROR/);
});

test("an ID that JSON cannot keep as a number is refused, not taken for another one", async (t) => {
  const asked: string[] = [];
  const gateway = await serve(t, {
    getPayment: async ({ externalId }) => {
      asked.push(externalId);
      throw new GatewayError("NOT_FOUND", "not known");
    },
  });
  const query = "query($id: ID!) { payment(externalId: $id) { state } }";
  const tooLarge = "a JSON number this large does not keep its digits: send a string";
  for (const [id, what] of [
    [2 ** 53, tooLarge],
    [1e21, tooLarge],
    [1.5, "ID cannot represent value."],
  ]) {
    const { errors } = await gateway.run(query, { id });
    assert.deepEqual(
      errors.map(({ message }: { message: string }) => message),
      [`Variable "$id" has invalid value: ${what}`],
    );
  }
  assert.deepEqual(asked, []);
  await gateway.run(query, { id: 2 ** 53 - 1 });
  await gateway.run("{ payment(externalId: 9007199254740993) { state } }");
  assert.deepEqual(asked, ["9007199254740991", "9007199254740993"]);
});

test("at most ten faults in variables are reported, each with its path", async (t) => {
  const gateway = await serve(t);
  const query = "mutation($i: CreatePaymentInput!) { createPayment(input: $i) { __typename } }";
  const told = async (i: unknown): Promise<string[]> => {
    const { errors } = await gateway.run(query, { i });
    for (const { extensions } of errors) assert.equal(extensions.code, "BAD_USER_INPUT");
    return errors.map(({ message }: { message: string }) => message).sort();
  };
  const notOne =
    'Within OneOf Input Object type "PaymentMethodDetailsInput", exactly one field must be ' +
    "specified, and the value for that field must be non-null.";
  assert.deepEqual(
    await told({
      amout: "1",
      amount: 1.5,
      mode: "NO_SUCH",
      externalId: { a: 1 },
      confirm: "yes",
      customer: "nobody",
      paymentMethod: { method: { cc: null, wallet: null } },
      products: [{ netAmount: "1", taxGroup: "x" }],
    }),
    [
      ': Expected value of type "CreatePaymentInput" not to include unknown field "amout".',
      ': Expected value of type "CreatePaymentInput" to include required field "currency".',
      " at .externalId: ID cannot represent value.",
      ' at .amount: Decimal takes a string, such as "10.10": a JSON number does not keep its digits',
      ' at .mode: The value does not exist in "PaymentMode" enum.',
      ` at .paymentMethod.method: ${notOne}`,
      ` at .paymentMethod.method.cc: ${notOne}`,
      " at .products[0].taxGroup: Int cannot represent non-integer value.",
      " at .confirm: Boolean cannot represent a non boolean value.",
      ' at .customer: Expected value of type "PaymentCustomerInput" to be an object.',
    ]
      .map((what) => `Variable "$i" has invalid value${what}`)
      .sort(),
  );
  const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`a${n}`, 1]));
  assert.equal((await told(many)).length, 10);
  assert.deepEqual(await told({ list: Array.from({ length: 10_000 }, () => 1) }), [
    "the request holds more than 10000 values",
  ]);
});

test("no response and no log record repeats a refused value, by HTTP and by WebSocket", async (t) => {
  const gateway = await serve(t);
  const client = socketClient(t, gateway, { lazy: false, onNonLazyError: () => undefined });
  const card = `{number: "CANARY", cvv: "CANARY", expMonth: 1, expYear: 2030`;
  const payment = (method: string, rest = "") => `mutation { createPayment(input: {
    amount: "1", currency: "EUR", mode: HOSTED, externalId: "e", paymentMethod: ${method} ${rest}
  }) { __typename } }`;
  const byVariable = `mutation($i: CreatePaymentInput!) { createPayment(input: $i) { __typename } }`;
  const bodies: (string | { query: string; variables?: Record<string, unknown> })[] = [
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
    // Misspelt names: GraphQL.js suggests a name, and quotes the whole value.
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
    const { errors } = JSON.parse(text);
    assert.ok(errors.length > 0, text);
    assert.doesNotMatch(text, /CANARY/);
    if (typeof body === "string") continue;
    const bySocket = await firstResult(client, body);
    assert.deepEqual(codesOf(bySocket.errors), codesOf(errors));
    assert.doesNotMatch(JSON.stringify(bySocket), /CANARY|"http"/);
  }
  const got = await fetch(`${gateway.url}?query={rateLimit{limit}}&variables=CANARY`);
  assert.equal(got.status, 400);
  assert.doesNotMatch(await got.text(), /CANARY/);
  assert.doesNotMatch(gateway.logged(), /CANARY/);
  assert.deepEqual(gateway.seen(), []);
});

test("a DateTime that no calendar has is refused, by variable and in the query", async (t) => {
  const listed: unknown[] = [];
  const gateway = await serve(t, {
    async listPayments({ firstSeenAfter }) {
      listed.push(firstSeenAfter?.seconds);
      return { edges: [], hasNextPage: false, hasPreviousPage: false, endCursor: undefined };
    },
  });
  const byVariable = "query ($f: PaymentFilter) { payments(filter: $f) { edges { cursor } } }";
  const ask = (at: string) => [
    gateway.run(byVariable, { f: { firstSeenAfter: at } }),
    gateway.run(`{ payments(filter: {firstSeenAfter: "${at}"}) { edges { cursor } } }`),
  ];
  for (const at of ["2026-02-31T00:00:00Z", "2026-02-01T24:00:00Z", "2026-02-29T00:00:00+02:00"]) {
    for (const { errors } of await Promise.all(ask(at))) {
      assert.equal(errors.length, 1, at);
      assert.doesNotMatch(errors[0].message, /2026-02/);
    }
  }
  assert.deepEqual(listed, []);
  await Promise.all(ask("2028-02-29T23:59:59.5+02:00"));
  assert.deepEqual(listed, [1_835_474_399n, 1_835_474_399n]);
});

const codesOf = (errors: Answer[]) => errors.map(({ extensions }) => extensions.code);

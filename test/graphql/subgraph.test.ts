import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { composeServices } from "@theguild/federation-composition";
import { parse } from "graphql";
import { pickAccount } from "../../src/auth/account.ts";
import type { Identify } from "../../src/auth/identify.ts";
import { GatewayError } from "../../src/errors.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import type { EdgeOptions } from "../../src/graphql/edge.ts";
import { schema } from "../../src/graphql/schema/schema.ts";
import { createSubgraphSchema, printSubgraph } from "../../src/graphql/schema/subgraph.ts";
import { emptyPage, type FakeMethods } from "../fake-core.ts";
import { type Answer, type Served, serve, somebody } from "./serve.ts";
import { firstResult, socketClient } from "./socket.ts";

test("the schema of other gateways has nothing of a subgraph", async (t) => {
  for (const name of ["_Any", "_Entity", "_Service"]) assert.equal(schema.getType(name), undefined);
  const gateway = await serve(t, {}, { introspection: true });
  for (const query of [
    "{ _service { sdl } }",
    "{ _entities(representations: []) { __typename } }",
  ]) {
    const { errors } = await gateway.run(query);
    assert.equal(errors[0].extensions.code, "GRAPHQL_VALIDATION_FAILED", query);
  }
});

/** A subgraph that refers to payments and payouts, and has types of names that this one has too. */
const orders = (key: string) => `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key", "@shareable"])
  scalar DateTime
  scalar Decimal
  type Query { orders(first: Int): OrderConnection! }
  type OrderConnection { edges: [OrderEdge!]! pageInfo: PageInfo! }
  type OrderEdge { cursor: String! node: Order! }
  type PageInfo @shareable {
    hasNextPage: Boolean! hasPreviousPage: Boolean! startCursor: String endCursor: String
  }
  type Order @key(fields: "id") {
    id: ID! total: Decimal! orderedAt: DateTime! payment: Payment refund: Payout
  }
  interface Error { message: String! }
  type OutOfStockError implements Error { message: String! sku: ID! }
  type Payment @key(fields: "${key}") { ${fieldsOf(key)} order: Order }
  type Payout @key(fields: "${key}", resolvable: false) { ${fieldsOf(key)} }
`;
const fieldsOf = (key: string) => key.replaceAll(/\w+/g, "$&: String!");

function composed(payments: string, key: string) {
  return composeServices([
    { name: "payments", typeDefs: parse(payments), url: "http://payments.example/graphql" },
    { name: "orders", typeDefs: parse(orders(key)), url: "http://orders.example/graphql" },
  ]);
}

test("the subgraph composes with one that refers to its payments and has types of the same names", () => {
  for (const inAccount of [false, true]) {
    const key = inAccount ? "merchantAccount externalId" : "externalId";
    const { errors, supergraphSdl } = composed(printSubgraph(inAccount), key);
    assert.deepEqual(errors, undefined);
    for (const entity of ["Payment", "Payout"]) {
      const joined = new RegExp(`^type ${entity} [^{]*graph: PAYMENTS, key: "${key}"`, "m");
      assert.match(supergraphSdl ?? "", joined);
    }
  }
  const { errors } = composed(printSubgraph().replace(" @shareable {", " {"), "externalId");
  assert.match(String(errors?.[0]?.message), /PageInfo/, "the control");
});

const accounts = new Set(["shop", "market", "closed"]);
/** A caller who may use two of the accounts. */
const identify: Identify = async ({ header }, asked = header("x-merchant-account") ?? "shop") => {
  const mine = new Set(["shop", "market"]);
  return { ...somebody, account: pickAccount(accounts, mine, asked, false) };
};

const methods: FakeMethods = {
  async getPayment({ externalId }, { caller }) {
    if (externalId === "unknown") throw new GatewayError("NOT_FOUND", "no such payment");
    if (externalId === "denied") throw new GatewayError("PERMISSION_DENIED", "needs the scope x");
    if (externalId === "bug") throw new TypeError("a bug");
    const payment = { externalId, details: { description: `of ${caller.account}` } };
    return { state: PaymentState.PAID, payment };
  },
  getPayout: async () => ({ state: PayoutState.PENDING, payout: {} }),
  listEvents: emptyPage,
};

type Run = (representations: unknown, headers?: Record<string, string>) => Promise<Answer>;

const query = `query ($of: [_Any!]!) { _entities(representations: $of) {
  __typename
  ... on Payment { externalId paid: state merchantAccount details { description } }
  ... on Payout { externalId state }
} }`;

function subgraph(
  t: TestContext,
  names: ReadonlySet<string> = new Set(["default"]),
  options: Partial<EdgeOptions> = {},
): Promise<Served> {
  return serve(t, methods, {
    schema: createSubgraphSchema(names),
    introspection: true,
    ...options,
  });
}

/** The two ways through the edge by which a caller names an account. */
const paths: Record<string, (t: TestContext, gateway: Served) => Run> = {
  HTTP: (_, gateway) => (of, headers) => gateway.run(query, { of }, headers),
  WebSocket: (t, gateway) => (of, connectionParams) => {
    const client = socketClient(t, gateway, connectionParams && { connectionParams });
    return firstResult(client, { query, variables: { of } });
  },
};

const paymentOf = (externalId: string, account = "shop") => ({
  ...{ __typename: "Payment", externalId, paid: "PAID", merchantAccount: account },
  details: { description: `of ${account}` },
});
const codesOf = ({ errors = [] }: Answer): Record<string, string> =>
  Object.fromEntries(
    errors.map(({ path, extensions }: Answer) => [path.join("."), extensions.code] as const),
  );

test("entities are read in the order of their representations, each once", async (t) => {
  const gateway = await subgraph(t, new Set(["shop"]), { identify });
  const of = [
    { __typename: "Payment", externalId: "a" },
    { __typename: "Payout", externalId: "a" },
    { __typename: "Payment", externalId: "unknown" },
    { __typename: "Payment", externalId: "a", merchantAccount: "shop" },
  ];
  const answer = await gateway.run(query, { of });
  assert.deepEqual(answer, {
    data: {
      _entities: [
        paymentOf("a"),
        { __typename: "Payout", externalId: "a", state: "PENDING" },
        null,
        paymentOf("a"),
      ],
    },
  });
  const seen = gateway.seen().map(({ method }) => method);
  assert.deepEqual(seen.sort(), ["getPayment", "getPayment", "getPayout"]);
});

test("an entity that fails has its error in its place", async (t) => {
  const gateway = await subgraph(t, new Set(["shop"]), { identify });
  const ids = ["denied", "a", "bug"];
  const of = ids.map((externalId) => ({ __typename: "Payment", externalId }));
  const answer = await gateway.run(query, { of });
  assert.deepEqual(answer.data, { _entities: [null, paymentOf("a"), null] });
  assert.deepEqual(codesOf(answer), {
    "_entities.0": "FORBIDDEN",
    "_entities.2": "INTERNAL_SERVER_ERROR",
  });
});

for (const [path, connect] of Object.entries(paths)) {
  test(`an entity is read in the account that it names, if the caller may, by ${path}`, async (t) => {
    const gateway = await subgraph(t, accounts, { identify });
    const run = connect(t, gateway);
    const representations = [
      { merchantAccount: "shop", externalId: "a" },
      { merchantAccount: "market", externalId: "a" },
      { merchantAccount: "closed", externalId: "a" },
      { merchantAccount: "nowhere", externalId: "a" },
      { externalId: "a" },
      { merchantAccount: "market", externalId: "a" },
    ].map((key) => ({ __typename: "Payment", ...key }));
    const answer = await run(representations);
    assert.deepEqual(answer.data, {
      _entities: [
        paymentOf("a"),
        paymentOf("a", "market"),
        null,
        null,
        null,
        paymentOf("a", "market"),
      ],
    });
    assert.deepEqual(codesOf(answer), {
      "_entities.2": "FORBIDDEN",
      "_entities.3": "FORBIDDEN",
      "_entities.4": "BAD_USER_INPUT",
    });
    const messages = new Map<number, string>(
      answer.errors.map(({ path: [, at], message }: Answer) => [at, message]),
    );
    assert.equal(messages.get(2), messages.get(3), "does not tell which accounts exist");
    assert.match(messages.get(4) ?? "", /^representations\[4\]\.merchantAccount: is required/);
    assert.equal(gateway.seen().length, 2);

    const headers = { "x-merchant-account": "market" };
    const other = await run([representations[0], representations[1]], headers);
    assert.deepEqual(other.data, { _entities: [paymentOf("a"), paymentOf("a", "market")] });
  });
}

test("what is below an entity is read in its account too", async (t) => {
  const gateway = await subgraph(t, accounts, { identify });
  const representation = { __typename: "Payment", merchantAccount: "market", externalId: "a" };
  await gateway.run(
    `query ($of: [_Any!]!) { _entities(representations: $of) { ... on Payment {
      events { cursor } eventsConnection { edges { cursor } } operations { paymentId }
    } } }`,
    { of: [representation] },
  );
  const accountsOf = gateway.seen().map(({ method, call }) => [method, call.caller.account]);
  assert.deepEqual(accountsOf, [
    ["getPayment", "market"],
    ["listEvents", "market"],
    ["listEvents", "market"],
  ]);
});

test("a wrong representation is refused with the name of its field, and the others stand", async (t) => {
  const gateway = await subgraph(t);
  const good = { __typename: "Payment", externalId: "a" };
  const wrong: [unknown, string][] = [
    ["text", "representations[1].__typename: must be Payment or Payout"],
    [{ externalId: "a" }, "representations[1].__typename: must be Payment or Payout"],
    [{ ...good, __typename: "Refund" }, "representations[1].__typename: must be Payment or Payout"],
    [{ __typename: "Payout" }, "representations[1].externalId: must be a text that is not empty"],
    [{ ...good, externalId: 7 }, "representations[1].externalId: must be a text that is not empty"],
    [
      { ...good, externalId: "" },
      "representations[1].externalId: must be a text that is not empty",
    ],
    [{ ...good, merchantAccount: null }, "representations[1].merchantAccount: must be a text"],
  ];
  for (const [representation, message] of wrong) {
    const answer = await gateway.run(query, { of: [good, representation] });
    assert.deepEqual(answer.data, { _entities: [paymentOf("a", "default"), null] });
    assert.deepEqual(codesOf(answer), { "_entities.1": "BAD_USER_INPUT" });
    assert.equal(answer.errors[0].message, message);
  }
  const unfit: [representation: unknown, message: RegExp][] = [
    [null, /^Variable "\$of" has invalid value at \[0\]: .* not to be null/],
    [{ ...good, externalId: "\ud800" }, /^Variable "\$of" .* at \[0\]\.externalId: half of /],
  ];
  for (const [representation, message] of unfit) {
    const { errors } = await gateway.run(query, { of: [representation] });
    assert.match(errors[0].message, message);
  }
});

test("each representation counts, one of a payout as a call to the service", async (t) => {
  const gateway = await subgraph(t);
  const codeOf = async (text: string, of?: unknown) =>
    (await gateway.run(text, { of })).errors?.[0].extensions.code;
  const payouts = (count: number) => Array(count).fill({ __typename: "Payout", externalId: "a" });
  const literal = (count: number) =>
    `[${Array(count).fill(`{__typename: "Payout", externalId: "a"}`).join()}]`;
  const given = "query ($of: [_Any!]!) { _entities(representations: $of) { __typename } }";
  const inline = (count: number) =>
    `{ _entities(representations: ${literal(count)}) { __typename } }`;
  const byDefault = (count: number) =>
    `query ($of: [_Any!]! = ${literal(count)}) { _entities(representations: $of) { __typename } }`;
  for (const count of [100, 101]) {
    const all = [codeOf(given, payouts(count)), codeOf(inline(count)), codeOf(byDefault(count))];
    const code = count > 100 ? "OPERATION_TOO_COMPLEX" : undefined;
    assert.deepEqual(await Promise.all(all), Array(3).fill(code));
  }
  assert.equal(await codeOf(given, Array(1_001).fill({})), "OPERATION_TOO_COMPLEX");
  const payments = Array(100).fill({ __typename: "Payment", externalId: "a" });
  const nested = `query ($of: [_Any!]!) { _entities(representations: $of) {
    ... on Payment { events(first: 10) { payment { externalId } } }
  } }`;
  assert.equal(await codeOf(nested, payments), "OPERATION_TOO_COMPLEX");
});

test("_service tells the schema where introspection is on, to callers with credentials", async (t) => {
  const text = "{ _service { sdl } }";
  const open = await subgraph(t);
  assert.deepEqual(await open.run(text), { data: { _service: { sdl: printSubgraph() } } });
  const closed = await subgraph(t, undefined, { introspection: false });
  const { errors } = await closed.run(text);
  assert.equal(errors[0].extensions.code, "INTROSPECTION_DISABLED");
  const locked = await subgraph(t, undefined, {
    identify: () => Promise.reject(new GatewayError("UNAUTHENTICATED", "say who is calling")),
  });
  assert.equal((await locked.post({ query: text })).status, 401);
});

test("a trusted document may read entities", async (t) => {
  const documents = new Map([["entities", query]]);
  const gateway = await subgraph(t, undefined, { trustedDocuments: { documents, only: true } });
  const variables = { of: [{ __typename: "Payment", externalId: "a" }] };
  const named = (await gateway.post({ documentId: "entities", variables })).json();
  assert.deepEqual(await named, { data: { _entities: [paymentOf("a", "default")] } });
  const other = await gateway.run(`${query} `, variables);
  assert.equal(other.errors[0].extensions.code, "PERSISTED_QUERY_ONLY");
});

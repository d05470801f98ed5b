import assert from "node:assert/strict";
import { test } from "node:test";
import { getIntrospectionQuery } from "graphql";
import { GatewayError } from "../../src/errors.ts";
import { emptyPage } from "../fake-core.ts";
import { type Served, serve } from "./serve.ts";
import { firstResult, socketClient } from "./socket.ts";

const nested = (depth: number) => `${"{ ... ".repeat(depth)} x ${"}".repeat(depth)}`;
/** Nested as deep as is needed: an item's confirmation is an item. */
const confirmations = (depth: number, within: string) =>
  `${"confirmation { ".repeat(depth)} ${within} ${"}".repeat(depth)}`;
/** Ten objects for each event. */
const wholeEvents = `payment {
  action { value } customer { email } details { fee { amount } fiscalization { fiscalId } }
  paymentMethod { ccToken { mask } applePay { mask } googlePay { mask } } }`;
const manyEvents = `query ($n: Int) {
  payment(externalId: "e") { events(first: $n) { ${wholeEvents} } }
}`;

const tooComplex = "OPERATION_TOO_COMPLEX";
const refused: [what: string, query: string, code?: string, variables?: Record<string, unknown>][] =
  [
    ["51 aliases", `{ ${Array.from({ length: 51 }, (_, n) => `a${n}: __typename`).join(" ")} }`],
    ["a text of 70,000 characters", `{ payment(externalId: "${"x".repeat(70_000)}") { id } }`],
    ["10,000 empty braces", nested(10_000)],
    ["an item's confirmations, ten deep", `{ walletItems { ${confirmations(10, "name")} } }`],
    [
      "the same through fragments",
      `{ walletItems { ...A } } fragment A on WalletItem { ${confirmations(5, "...B")} }
     fragment B on WalletItem { ${confirmations(5, "name")} }`,
    ],
    [
      "a hundred events with all that is in them",
      `{ payment(externalId: "e") { events(first: 100) { ${wholeEvents} } } }`,
    ],
    [
      "the same as a connection",
      `{ payment(externalId: "e") { eventsConnection(first: 100) { edges { node { ${wholeEvents} } } } } }`,
    ],
    ["the same by a variable", manyEvents, tooComplex, { n: 100 }],
    [
      "the same by a variable's default",
      `query ($n: Int = 100) { payment(externalId: "e") { events(first: $n) { ${wholeEvents} } } }`,
    ],
    [
      "an alias that would set a prototype",
      `{ rateLimit { __proto__: limit } }`,
      "GRAPHQL_VALIDATION_FAILED",
    ],
  ];

for (const [what, query, code = tooComplex, variables] of refused) {
  test(`${what}: refused without a call to the core`, async (t) => {
    const gateway = await serve(t);
    const { data, errors } = await gateway.run(query, variables);
    assert.equal(data ?? undefined, undefined);
    assert.deepEqual([...new Set(errors.map(codeOf))], [code]);
    assert.deepEqual(gateway.seen(), []);
  });
}

// What an operation may be is decided in one place: the other transports show that they ask it.
test("what costs too much is refused by an event stream and by WebSocket, too", async (t) => {
  const gateway = await serve(t);
  const asked = { query: manyEvents, variables: { n: 100 } };
  const streamed = await (await gateway.post(asked, { accept: "text/event-stream" })).text();
  assert.match(streamed, /^data: \{"errors":\[.*"code":"OPERATION_TOO_COMPLEX"/m);
  const { errors } = await firstResult(socketClient(t, gateway), asked);
  assert.deepEqual(errors.map(codeOf), [tooComplex]);
  assert.deepEqual(gateway.seen(), []);
});

test("names are suggested and introspection is answered only where it is on", async (t) => {
  const closed = await serve(t);
  const open = [
    await serve(t, {}, { production: false }),
    await serve(t, {}, { introspection: true }),
  ];
  for (const query of [
    `{ paymnt(externalId: "e") { id } }`,
    `{ payment(externalId: "e") { detials } }`,
    `{ payment(externlId: "e") { id } }`,
    `{ payment(externalId: "e") { ... on Paymnt { id } } }`,
    "{ payments(filter: {needOperator: true}) { edges { cursor } } }",
    "{ payments(filter: {states: [PAIDD]}) { edges { cursor } } }",
    "query ($f: PaymntFilter) { payments(filter: $f) { edges { cursor } } }",
    "query ($f: PaymentFilter = {state: PAID}) { payments(filter: $f) { edges { cursor } } }",
  ]) {
    const messageBy = async ({ run }: Served) => (await run(query)).errors[0].message as string;
    assert.doesNotMatch(await messageBy(closed), /Did you mean/);
    for (const gateway of open) {
      assert.match(await messageBy(gateway), /Did you mean/, "what the search looks for");
    }
  }
  const { errors } = await closed.run(getIntrospectionQuery());
  assert.deepEqual([...new Set(errors.map(codeOf))], ["INTROSPECTION_DISABLED"]);
  for (const { run } of open) {
    const { data } = await run(getIntrospectionQuery());
    assert.equal(data.__schema.queryType.name, "Query");
  }
});

test("the queries that frontends send are within the limits", async (t) => {
  const payment = { externalId: "e", details: { operationId: "o" } };
  const gateway = await serve(t, {
    getPayment: async () => ({ payment }),
    listEvents: emptyPage,
    findWalletItems: async () => [],
    getOperation: async () => ({}),
  });
  const asked = [
    `{ payment(externalId: "e") { id operationInfo { id } events(first: 50) { cursor ${wholeEvents} } } }`,
    `{ walletItems(customer: {externalId: "c"}) { confirmation { status } } }`,
    `{ ${Array.from({ length: 50 }, (_, n) => `p${n}: payment(externalId: "${n}") { id details { status } }`).join(" ")} }`,
  ];
  for (const query of asked) assert.equal((await gateway.run(query)).errors, undefined);
});

test("the cost of a cached document follows the variables of each request", async (t) => {
  const { run } = await serve(t, {
    getPayment: () => Promise.reject(new GatewayError("NOT_FOUND", "no such payment")),
  });
  const query = `query ($e: ID!, $n: Int = 100) { payment(externalId: $e) {
    events(first: $n) { ${wholeEvents} } } }`;
  const asked: [object, isRefused: boolean][] = [
    [{ n: 1 }, false],
    [{ n: 100 }, true],
    [{}, true],
    [{ n: 2 }, false],
  ];
  for (const [variables, isRefused] of asked) {
    const { errors = [] } = await run(query, { e: "e", ...variables });
    assert.deepEqual(errors.map(codeOf), isRefused ? ["OPERATION_TOO_COMPLEX"] : []);
  }
});

function codeOf(error: { extensions: { code: string } }): string {
  return error.extensions.code;
}

import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it, type TestContext } from "node:test";
import { composeServices } from "@theguild/federation-composition";
import { buildSchema, parse } from "graphql";
import { createClient } from "graphql-sse";
import { createYoga } from "graphql-yoga";
import type { Gateway } from "../../src/app/gateway.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import { type CuttingProxy, startCuttingProxy } from "../cutting-proxy.ts";
import { paymentTold, sendCallback, sendRefund } from "../gateway/callers.ts";
import { startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { timeoutMs, until } from "../until.ts";
import type { Answer } from "./serve.ts";

/*
 * The gateway as a subgraph behind a real router, beside a subgraph of orders that refers to its
 * payments and payouts.
 */

const folder = new URL("router/", import.meta.url);
const skip = existsSync(new URL("node_modules", folder))
  ? false
  : "the router is not installed: npm ci --prefix test/graphql/router";

const committed = readFileSync(new URL("../../schema.subgraph.graphql", import.meta.url), "utf8");

/** The subgraph of orders, which refers to payments and payouts. */
const ordersSubgraph = `
  extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
  type Query { orders(ids: [ID!]!): [Order!]! }
  type Order { id: ID! payment: Payment refund: Payout }
  type Payment @key(fields: "externalId") { externalId: String! order: Order! }
  type Payout @key(fields: "externalId", resolvable: false) { externalId: String! }
`;
/** Its schema as its server has it. */
const ordersSchema = buildSchema(`
  scalar _Any
  union _Entity = Payment
  type Query { orders(ids: [ID!]!): [Order!]! _entities(representations: [_Any!]!): [_Entity]! }
  type Order { id: ID! payment: Payment refund: Payout }
  type Payment { externalId: String! order: Order! }
  type Payout { externalId: String! }
`);

/** An order and a payment, as the default resolvers of GraphQL.js take them. */
const orderOf = (id: string) => ({
  ...{ id, payment: paymentOf({ externalId: id }) },
  refund: { externalId: `refund-of-${id}` },
});
function paymentOf({ externalId }: { externalId: string }) {
  return { __typename: "Payment", externalId, order: () => orderOf(externalId) };
}
const rootValue = {
  orders: ({ ids }: { ids: string[] }) => ids.map(orderOf),
  _entities: ({ representations }: { representations: { externalId: string }[] }) =>
    representations.map(paymentOf),
};

async function startOrders(): Promise<Server> {
  const plugins = [
    {
      onExecute({ args }: { args: { rootValue: unknown } }) {
        args.rootValue = rootValue;
      },
    },
  ];
  const server = createServer(createYoga({ schema: ordersSchema, plugins, logging: false }));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return server;
}

const urlOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

const files = scratch();
const [shopKey, narrowKey] = [newKey(), newKey()];
const scopes = ["payments:write", "payments:read", "payouts:read", "events:read"];
const keys = () =>
  files.write(
    "keys",
    keysText([
      { name: "shop", key: shopKey, scopes },
      { name: "narrow", key: narrowKey, scopes: ["payments:read"] },
    ]),
  );

async function ask(
  url: string,
  query: string,
  variables: object,
  headers = as(shopKey),
): Promise<Answer> {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(timeoutMs),
  });
  return response.json();
}

const as = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });

const createPayment = `mutation ($input: CreatePaymentInput!) { createPayment(input: $input) {
  __typename
  ... on Payment { externalId state details { paymentId } order { id } }
  ... on Error { message }
} }`;

const inputOf = (externalId: string, more: object = {}, number = "4111111111111111") => ({
  input: {
    ...{ amount: "10.10", currency: "UAH", mode: "DIRECT", externalId },
    customer: { email: "customer@shop.example" },
    paymentMethod: { method: { cc: { number, cvv: "123", expMonth: 12, expYear: 2031 } } },
    ...more,
  },
});

describe("behind a router", { skip }, () => {
  let gateway: Gateway;
  /** Between the router and the gateway. */
  let link: CuttingProxy;
  let orders: Server;
  let routers: ChildProcess;
  let url: string;

  /** Starts a router of the gateway at `payments` and of the orders. */
  async function startRouter(payments: string, options: object = {}): Promise<string> {
    const { supergraphSdl, errors } = composeServices([
      { name: "payments", typeDefs: parse(committed), url: `${payments}/graphql` },
      { name: "orders", typeDefs: parse(ordersSubgraph), url: `${urlOf(orders)}/graphql` },
    ]);
    assert.deepEqual(errors, undefined);
    routers.send({ supergraph: supergraphSdl, ...options });
    const [address] = await once(routers, "message", { signal: AbortSignal.timeout(timeoutMs) });
    return address;
  }

  before(async () => {
    routers = fork(new URL("router.js", folder), { execArgv: [] });
    orders = await startOrders();
    const env = { GRAPHQL_SUBGRAPH: "true", AUTH_MODE: "keys", API_KEYS_FILE: keys() };
    const delays = { callbackMs: 5, settleMs: 50, payoutMs: 20, slowAnswerMs: 2_500 };
    gateway = await startTestGateway({ ...env, RATE_LIMIT_INITIAL: "50" }, { delays });
    link = await startCuttingProxy(gateway.publicUrl);
    url = await startRouter(link.url);
  });
  after(async () => {
    routers.disconnect();
    orders.closeAllConnections();
    orders.close();
    await link.close();
    await gateway.stop();
  });

  /** The successful operations of a payment. */
  async function successesOf(externalId: string): Promise<string[]> {
    const query = `query ($id: ID!) { payment(externalId: $id) { operations { operation status } } }`;
    const { operations } = (await ask(url, query, { id: externalId })).data.payment ?? {};
    return (operations ?? [])
      .filter(({ status }: Answer) => status === "SUCCESS")
      .map(({ operation }: Answer) => operation);
  }

  /** How many mutations have ended at the gateway. */
  async function mutations(): Promise<number> {
    return (await scrapeOf(gateway)).sum("graphql_operations_total", { type: "mutation" });
  }

  const statesOf = `query ($ids: [ID!]!) { orders(ids: $ids) {
    id payment { externalId state } refund { externalId state }
  } }`;
  const order = (id: string, state: string | null) => ({
    ...{ id, payment: { externalId: id, state } },
    refund: { externalId: `refund-of-${id}`, state: null },
  });

  it("composes by Apollo's own composition too", async () => {
    const { compose } = await import(new URL("apollo.js", folder).href);
    const { errors, hints } = compose([
      { name: "payments", sdl: committed, url: "http://payments.example/graphql" },
      { name: "orders", sdl: ordersSubgraph, url: "http://orders.example/graphql" },
    ]);
    assert.deepEqual([errors, hints], [undefined, []]);
  });

  it("adds payments to orders, and orders to payments, with the caller's own token", async () => {
    const { data } = await ask(url, createPayment, inputOf("own"));
    assert.equal(data.createPayment.state, "PAID");
    assert.deepEqual(data.createPayment.order, { id: "own" });
    assert.deepEqual(await ask(url, statesOf, { ids: ["own", "unknown"] }), {
      data: { orders: [order("own", "PAID"), order("unknown", null)] },
    });
  });

  it("passes errors on with their codes, and the rest of the answer stands", async () => {
    await ask(url, createPayment, inputOf("codes"));
    const codesOf = ({ errors }: Answer) =>
      new Set(errors.map(({ extensions }: Answer) => extensions.code));
    const narrow = await ask(url, statesOf, { ids: ["codes"] }, as(narrowKey));
    assert.deepEqual(narrow.data.orders, [order("codes", "PAID")]);
    assert.deepEqual(codesOf(narrow), new Set(["FORBIDDEN"]));
    const nobody = await ask(url, statesOf, { ids: ["codes"] }, {});
    assert.deepEqual(nobody.data.orders, [order("codes", null)]);
    assert.deepEqual(codesOf(nobody), new Set(["UNAUTHENTICATED"]));
    const long = await ask(url, statesOf, { ids: ["x".repeat(300)] });
    assert.deepEqual(codesOf(long), new Set(["BAD_USER_INPUT"]));
  });

  it("resumes a subscription behind its last event, wherever it was cut", async (t) => {
    const front = await startCuttingProxy(new URL(url).origin);
    t.after(() => front.close());
    const watch = (t: TestContext, after?: string) => {
      const client = createClient({
        url: `${front.url}/graphql`,
        headers: as(shopKey),
        retryAttempts: 0,
      });
      t.after(() => client.dispose());
      const query = `subscription ($after: String) { paymentUpdated(externalId: "live", after: $after) {
        cursor payment { operation details { paymentId } }
      } }`;
      return client.iterate({ query, variables: { after } }) as AsyncIterableIterator<Answer>;
    };
    await sendCallback(gateway, paymentTold("live"));
    let cursor: string | undefined;
    let n = 1;
    for (const cutAt of [front, link]) {
      const events = watch(t, cursor);
      if (cursor) await sendRefund(gateway, "live", n++);
      const { value } = await events.next();
      cursor = value.data.paymentUpdated.cursor as string;
      cutAt.cut();
      // The client hears of the cut: by an error of its connection or of the router.
      const last = await events.next().catch((error) => ({ value: { errors: [error] } }));
      assert.ok(last.value.errors?.length > 0, JSON.stringify(last));
      await sendRefund(gateway, "live", n++);
      await sendRefund(gateway, "live", n++);
      cutAt.mend();
      const resumed = watch(t, cursor);
      const seen = [await resumed.next(), await resumed.next()];
      cursor = seen[1]?.value.data.paymentUpdated.cursor as string;
      for (const { value } of seen) {
        assert.equal(value.data.paymentUpdated.payment.operation, "REFUND", JSON.stringify(value));
      }
      await resumed.return?.();
    }
  });

  it("charges once when the router gives up and tries again, and the client does too", async () => {
    const slow = "4000000000000747";
    const hasty = await startRouter(link.url, { timeoutMs: 300, repeatsMutations: true });
    const input = inputOf("hasty", { idempotencyKey: "hasty" }, slow);
    const { errors } = await ask(hasty, createPayment, input);
    assert.equal(errors[0].extensions.code, "GATEWAY_TIMEOUT");
    assert.ok(!JSON.stringify(errors).includes(slow), "the router tells no card number");
    const { data } = await ask(url, createPayment, input);
    assert.equal(data.createPayment.state, "PAID");
    assert.deepEqual(await successesOf("hasty"), ["PAYMENT"]);

    // Without a key the client is not told how its own call ended.
    const answer = await ask(hasty, createPayment, inputOf("keyless", {}, slow));
    assert.notEqual(answer.data.createPayment?.__typename, "Payment", JSON.stringify(answer));
    assert.deepEqual(await successesOf("keyless"), ["PAYMENT"]);
  });

  it("gets a mutation once from a router that repeats reads alone", async () => {
    const patient = await startRouter(link.url, { timeoutMs: 300 });
    const before = await mutations();
    const answer = await ask(patient, createPayment, inputOf("patient", {}, "4000000000000747"));
    assert.equal(answer.errors[0].extensions.code, "GATEWAY_TIMEOUT");
    await until(async () => (await successesOf("patient")).length > 0);
    assert.equal((await mutations()) - before, 1);
  });
});

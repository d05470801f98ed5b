import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { type Sandbox, startSandbox } from "../../sandbox/server.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { sign } from "../../src/wire/signature.ts";
import { keysText, newKey, scratch } from "../auth/issuer.ts";
import type { Answer } from "../graphql/serve.ts";
import { startTestGateway } from "../start.ts";
import { timeoutMs } from "../until.ts";
import { paymentRequest } from "./operations.ts";

const files = scratch();
const [shopKey, marketKey, bothKey] = [newKey(), newKey(), newKey()];
const scopes = ["payments:read", "payments:write", "events:read", "watch:create"];
const accounts = ["shop", "market"] as const;

let gateway: Gateway;
const emulators: Sandbox[] = [];
before(async () => {
  const merchants: Record<string, object> = {};
  for (const name of accounts) {
    const emulator = await startSandbox({
      host: "127.0.0.1",
      port: 0,
      login: name,
      password: new Secret(`password-of-${name}`),
      delays: { callbackMs: 0 },
    });
    emulators.push(emulator);
    merchants[name] = { login: name, password: `password-of-${name}`, url: emulator.url };
  }
  gateway = await startTestGateway({
    MERCHANTS_FILE: files.write("merchants", JSON.stringify(merchants)),
    AUTH_MODE: "keys",
    API_KEYS_FILE: files.write(
      "keys",
      keysText([
        { name: "shop", key: shopKey, scopes, merchants: ["shop"] },
        { name: "market", key: marketKey, scopes, merchants: ["market"] },
        { name: "both", key: bothKey, scopes },
      ]),
    ),
    WATCH_TOKEN_SECRET: "w".repeat(32),
    GRAPHQL_SUBGRAPH: "true",
    RATE_LIMIT_INITIAL: "50",
  });
});
after(async () => {
  await gateway.stop();
  await Promise.all(emulators.map((emulator) => emulator.close()));
});

const as = (key: string, more: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${key}`, ...more },
  signal: AbortSignal.timeout(timeoutMs),
});
const transport = () => createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "2" });
const payments = () => createClient(PaymentService, transport());
const events = () => createClient(EventService, transport());
const request = (externalId: string) => paymentRequest(externalId) as never;

async function codeOf(call: Promise<unknown>): Promise<Code> {
  try {
    await call;
  } catch (error) {
    return ConnectError.from(error).code;
  }
  return assert.fail("the call succeeded");
}

async function first<T>(stream: AsyncIterable<T>): Promise<T | undefined> {
  for await (const item of stream) return item;
  return undefined;
}

test("a key limited to one account uses it by default and no other", async () => {
  const { payment } = await payments().createPayment(request("limited"), as(shopKey));
  assert.ok(payment);
  assert.equal(emulators[0]?.ledger().payments.length, 1);
  assert.equal(emulators[1]?.ledger().payments.length, 0);
  const answers = await Promise.all(
    ["market", "nowhere", "default"].map((account) =>
      payments()
        .getPayment({ externalId: "limited" }, as(shopKey, { "x-merchant-account": account }))
        .then(
          () => assert.fail(account),
          (error) => `${ConnectError.from(error).code} ${ConnectError.from(error).message}`,
        ),
    ),
  );
  assert.equal(new Set(answers).size, 1);
  assert.match(answers[0] ?? "", new RegExp(`^${Code.PermissionDenied} `));
  const unsaid = payments().getPayment({ externalId: "limited" }, as(bothKey));
  assert.equal(await codeOf(unsaid), Code.PermissionDenied);
  await payments().getPayment(
    { externalId: "limited" },
    as(bothKey, { "x-merchant-account": "shop" }),
  );
});

test("the same external id is a different payment in another account", async () => {
  await payments().createPayment(request("same"), as(shopKey));
  assert.equal(
    await codeOf(payments().getPayment({ externalId: "same" }, as(marketKey))),
    Code.NotFound,
  );
  await payments().createPayment(request("same"), as(marketKey));
  const [a, b] = await Promise.all(
    [shopKey, marketKey].map((key) => payments().getPayment({ externalId: "same" }, as(key))),
  );
  assert.notEqual(a?.payment?.details?.paymentId, b?.payment?.details?.paymentId);
});

test("an entity of a supergraph is the payment of the account in its key", async () => {
  await payments().createPayment(request("entity"), as(shopKey));
  await payments().createPayment(request("entity"), as(marketKey));
  const query = `query ($of: [_Any!]!) { _entities(representations: $of) { ... on Payment {
    merchantAccount state eventsConnection { edges { node { externalId } } }
  } ... on Payout { paidOut: state } } }`;
  const key = { __typename: "Payment", externalId: "entity" };
  const read = async (token: string, representations: object[]) => {
    const { headers, signal } = as(token, { "x-merchant-account": "market" });
    const response = await fetch(`${gateway.publicUrl}/graphql`, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json" },
      body: JSON.stringify({ query, variables: { of: representations } }),
      signal,
    });
    return (await response.json()) as Answer;
  };
  const inShop = { ...key, merchantAccount: "shop" };
  const inMarket = { ...key, merchantAccount: "market" };
  const { data, errors } = await read(bothKey, [inShop, inMarket]);
  assert.equal(errors, undefined);
  assert.deepEqual(
    data._entities.map(({ merchantAccount, state }: Answer) => [merchantAccount, state]),
    [
      ["shop", "PAID"],
      ["market", "PAID"],
    ],
  );
  for (const { eventsConnection } of data._entities) assert.ok(eventsConnection.edges.length > 0);

  const payout = { ...inMarket, __typename: "Payout" };
  const limited = await read(marketKey, [inShop, inMarket, key, payout]);
  const [other, own, unsaid, unscoped] = limited.data._entities;
  assert.deepEqual([other, own.state, unsaid, unscoped], [null, "PAID", null, null]);
  const codes = limited.errors.map(({ path, extensions }: Answer) => [path[1], extensions.code]);
  assert.deepEqual(codes.sort(), [
    [0, "FORBIDDEN"],
    [2, "BAD_USER_INPUT"],
    [3, "FORBIDDEN"],
  ]);
});

test("an account's stream has only its own events", async () => {
  await payments().createPayment(request("of-shop"), as(shopKey));
  await payments().createPayment(request("of-market"), as(marketKey));
  const seen: string[] = [];
  for await (const { event } of events().streamEvents({ afterCursor: "earliest" }, as(marketKey))) {
    seen.push(event?.externalId ?? "");
    if (event?.externalId === "of-market") break;
  }
  assert.ok(!seen.includes("of-shop") && !seen.includes("limited"), seen.join());
  const watch = payments().watchPayment({ externalId: "of-market" }, as(marketKey));
  assert.equal((await first(watch))?.event?.externalId, "of-market");
});

test("a cursor of one account is OUT_OF_RANGE in another", async () => {
  for (let n = 0; n < 10; n++) await payments().createPayment(request(`ahead-${n}`), as(shopKey));
  const { cursor } = await payments().getPayment({ externalId: "ahead-9" }, as(shopKey));
  const foreign = events().streamEvents({ afterCursor: cursor }, as(marketKey));
  assert.equal(await codeOf(first(foreign)), Code.OutOfRange);
});

test("two accounts may use the same Idempotency-Key", async () => {
  const header = { "idempotency-key": "the-same-key" };
  const one = await payments().createPayment(request("idem-1"), as(shopKey, header));
  const two = await payments().createPayment(request("idem-2"), as(marketKey, header));
  assert.notEqual(one.payment?.details?.paymentId, two.payment?.details?.paymentId);
  const again = payments().createPayment(request("idem-3"), as(shopKey, header));
  assert.equal(await codeOf(again), Code.AlreadyExists);
});

test("a watch token is valid only for its account", async () => {
  await payments().createPayment(request("watched"), as(shopKey));
  const { token } = await events().createWatchToken(
    { externalId: "watched", kind: EventKind.PAYMENT },
    as(shopKey),
  );
  const watch = (more: Record<string, string>) =>
    first(payments().watchPayment({ externalId: "watched" }, as(token, more)));
  assert.equal((await watch({}))?.event?.externalId, "watched");
  assert.equal(await codeOf(watch({ "x-merchant-account": "market" })), Code.PermissionDenied);
});

test("each account has a budget of its own", async () => {
  const remaining = async (key: string) => {
    let told = "";
    await payments().getPayment(
      { externalId: "same" },
      { ...as(key), onHeader: (headers) => (told = headers.get("x-ratelimit-remaining") ?? "") },
    );
    return Number(told);
  };
  const before = await remaining(marketKey);
  for (let n = 0; n < 5; n++) await payments().createPayment(request(`spent-${n}`), as(shopKey));
  assert.ok((await remaining(marketKey)) >= before);
});

test("callbacks are verified by the password of the account in their path", async () => {
  const body = Buffer.from(
    '{"external_id":"called","operation":"payment","details":{"payment_id":"p","status":"success"}}',
  );
  const send = async (account: string, password: string) => {
    const response = await fetch(`${gateway.publicUrl}/callbacks/${account}/payments`, {
      method: "POST",
      headers: { "x-service-signature": sign(body, password) },
      body,
    });
    await response.arrayBuffer();
    return response.status;
  };
  assert.equal(await send("market", "password-of-shop"), 401);
  assert.equal(await send("shop", "password-of-shop"), 200);
  assert.equal(
    await codeOf(payments().getPayment({ externalId: "called" }, as(marketKey))),
    Code.NotFound,
  );
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { test } from "node:test";
import type { Client } from "graphql-ws";
import WebSocket from "ws";
import type { Identify } from "../../../src/auth/identify.ts";
import { GatewayError } from "../../../src/errors.ts";
import { PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { heapBytes } from "../../collect.ts";
import { answeredPayment } from "../../core/answers.ts";
import { until } from "../../until.ts";
import { createFeed, paymentEvent } from "../feed.ts";
import { type Answer, serve, somebody } from "../serve.ts";
import { rawSocket, socketClient } from "../socket.ts";

async function first(client: Client, query: string): Promise<Answer> {
  return (await client.iterate({ query }).next()).value;
}

const budget = "{ rateLimit { limit } }";

test("queries and mutations run over WebSocket, with a deadline and without an idempotency key", async (t) => {
  const gateway = await serve(t, {
    createPayment: async () => answeredPayment({ id: "p-1" }),
  });
  const client = socketClient(t, gateway);
  assert.deepEqual(await first(client, budget), { data: { rateLimit: { limit: 10 } } });
  assert.deepEqual(
    await first(
      client,
      `mutation { createPayment(input: {amount: "1", currency: "EUR", mode: HOSTED,
        externalId: "e", paymentMethod: {type: CARD}}) { ... on Payment { id } } }`,
    ),
    { data: { createPayment: { id: "p-1" } } },
  );
  const { call } = gateway.seen()[0] ?? assert.fail();
  assert.ok((call.deadlineMs ?? 0) > Date.now());
  assert.equal(call.idempotencyKey, undefined);
});

test("credentials in connection_init override those of the upgrade request", async (t) => {
  const asked: unknown[] = [];
  const identify: Identify = async ({ header }) => {
    asked.push(["authorization", "x-merchant-account", "x-customer-auth", "x-other"].map(header));
    return somebody;
  };
  const gateway = await serve(t, {}, { identify });
  class WithHeaders extends WebSocket {
    constructor(url: string, protocols: string) {
      super(url, protocols, {
        headers: { authorization: "Bearer upgrade", "x-merchant-account": "upgrade" },
      });
    }
  }
  const client = socketClient(t, gateway, {
    webSocketImpl: WithHeaders,
    connectionParams: {
      Authorization: "Bearer init",
      "X-Customer-Auth": "jwt",
      "x-other": "ignored",
      "x-merchant-account": 7,
    },
  });
  await first(client, budget);
  assert.deepEqual(asked, [["Bearer init", "upgrade", "jwt", undefined]]);
});

const refusals: [thrown: Error, code: number][] = [
  [new GatewayError("UNAUTHENTICATED", "who are you?"), 4401],
  [new GatewayError("PERMISSION_DENIED", "not you"), 4403],
  [new GatewayError("UNAVAILABLE", "no keys"), 1013],
  [new TypeError("the inside of the gateway"), 1013],
];

for (const [thrown, code] of refusals) {
  test(`a caller refused with ${thrown.name} ${thrown.message} is cut with ${code}`, async (t) => {
    const identify: Identify = () => Promise.reject(thrown);
    const gateway = await serve(t, {}, { identify });
    const client = socketClient(t, gateway);
    await assert.rejects(first(client, budget), (event: { code: number; reason: string }) => {
      assert.equal(event.code, code);
      assert.doesNotMatch(event.reason, /inside|who|keys/);
      return true;
    });
    assert.deepEqual(gateway.seen(), []);
  });
}

test("a connection whose token has expired runs no more operations", async (t) => {
  let expiresAtMs = Date.now() + 60_000;
  const identify: Identify = async () => ({
    ...somebody,
    get expiresAtMs() {
      return expiresAtMs;
    },
  });
  const gateway = await serve(t, {}, { identify });
  const client = socketClient(t, gateway, { lazy: false, onNonLazyError: () => undefined });
  assert.deepEqual((await first(client, budget)).data, { rateLimit: { limit: 10 } });
  expiresAtMs = Date.now();
  await assert.rejects(first(client, budget), (errors: Answer) => {
    const { code, userMessage } = errors[0].extensions;
    assert.equal(code, "UNAUTHENTICATED");
    assert.match(userMessage, /^[A-Z].+\.$/, "the customer is told, as over HTTP");
    return true;
  });
});

test("a client that ends one subscription keeps the others of its socket", async (t) => {
  const feeds = { left: createFeed(), kept: createFeed() };
  const gateway = await serve(t, {
    watchPayment: (request, call) =>
      feeds[request.externalId as "left" | "kept"].watch(request, call),
  });
  const client = socketClient(t, gateway);
  const watch = (id: string) =>
    client.iterate({ query: `subscription { paymentUpdated(externalId: "${id}") { cursor } }` });
  const left = watch("left");
  const kept = watch("kept");
  feeds.left.push(paymentEvent("c-1", PaymentStatus.PENDING));
  feeds.kept.push(paymentEvent("c-1", PaymentStatus.PENDING));
  await Promise.all([left.next(), kept.next()]);
  await left.return?.();
  await feeds.left.released;
  assert.equal((await feeds.left.opened).call.signal.aborted, true);
  const late = paymentEvent("c-2", PaymentStatus.SUCCESS);
  assert.equal(feeds.left.offer(late), false, "nothing is pushed behind the end");
  feeds.kept.push(paymentEvent("c-2", PaymentStatus.SUCCESS));
  assert.deepEqual((await kept.next()).value, { data: { paymentUpdated: { cursor: "c-2" } } });
  assert.equal((await feeds.kept.opened).call.signal.aborted, false);
  await kept.return?.();
});

test("a client may use an id again as soon as it has completed the operation", async (t) => {
  const feeds = { old: createFeed(), new: createFeed() };
  const read = Promise.withResolvers<never>();
  const gateway = await serve(t, {
    watchPayment: (request, call) =>
      feeds[request.externalId as "old" | "new"].watch(request, call),
    getPayment: () => read.promise,
  });
  const { send, subscribe, messages, message } = await rawSocket(t, gateway);
  const watch = (id: string) => `subscription { paymentUpdated(externalId: "${id}") { cursor } }`;
  subscribe(watch("old"));
  await feeds.old.opened;
  send({ id: "1", type: "complete" });
  subscribe(watch("new"));
  await feeds.old.released;
  feeds.new.push(paymentEvent("c-1", PaymentStatus.PENDING));
  await message("next");
  assert.deepEqual(messages, [
    { id: "1", type: "next", payload: { data: { paymentUpdated: { cursor: "c-1" } } } },
  ]);

  messages.length = 0;
  subscribe('{ payment(externalId: "slow") { state } }', "2");
  const slow = await until(() => gateway.seen().find(({ method }) => method === "getPayment"));
  send({ id: "2", type: "complete" });
  subscribe(budget, "2");
  await message("complete");
  assert.ok(slow.call.signal.aborted);
  read.reject(new GatewayError("NOT_FOUND", "not known"));
  subscribe(budget, "3");
  await until(() => messages.find(({ id, type }) => id === "3" && type === "complete"));
  const answer = { data: { rateLimit: { limit: 10 } } };
  assert.deepEqual(
    messages,
    ["2", "3"].flatMap((id) => [
      { id, type: "next", payload: answer },
      { id, type: "complete" },
    ]),
  );
});

test("a stream keeps nothing of its message but what it needs", async (t) => {
  const gateway = await serve(t, {
    watchPayment: (request, call) => createFeed().watch(request, call),
  });
  const { send, message, subscribe, messages } = await rawSocket(t, gateway);
  const query = 'subscription { paymentUpdated(externalId: "e") { cursor } }';
  const streams = 40;
  const before = heapBytes();
  for (let id = 0; id < streams; id++) {
    const variables = { undeclared: String(id).padEnd(900_000, "x") };
    send({ id: String(id), type: "subscribe", payload: { query, variables } });
    await until(() => gateway.seen().length > id);
  }
  await until(() => heapBytes() - before < (streams / 4) * 900_000);
  subscribe(budget, "last");
  await message("complete");
  assert.equal(messages.length, 2, "the streams are open");
});

test("a message that is none of a client closes its socket, and no error is logged", async (t) => {
  const gateway = await serve(t, { watchPayment: createFeed().watch });
  const longId = JSON.stringify({ id: "x".repeat(256), type: "subscribe", payload: { query: "" } });
  for (const text of ['{"type":"connection_ack"}', '{"type":"no"}', "{", "[]", longId]) {
    const { socket } = await rawSocket(t, gateway);
    socket.send(text);
    assert.equal((await once(socket, "close"))[0], 4400);
  }
  const { socket, subscribe } = await rawSocket(t, gateway);
  const id = "x".repeat(200);
  subscribe('subscription { paymentUpdated(externalId: "e") { cursor } }', id);
  subscribe(budget, id);
  assert.equal((await once(socket, "close"))[0], 4409);
  assert.doesNotMatch(gateway.logged(), /"level":"error"|"level":50/);
});

test("a socket that breaks releases the core's streams", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const { socket, subscribe } = await rawSocket(t, gateway);
  subscribe(`subscription { paymentUpdated(externalId: "order-1") { cursor } }`);
  await feed.opened;
  socket.terminate();
  await feed.released;
});

async function upgradeStatus(
  url: string,
  options?: WebSocket.ClientOptions,
): Promise<number | undefined> {
  const socket = new WebSocket(url, "graphql-transport-ws", options);
  socket.on("error", () => undefined);
  const opened = once(socket, "open").then(() => 101);
  const refused = once(socket, "unexpected-response").then(([, response]) => response.statusCode);
  const status = await Promise.race([opened, refused]);
  socket.terminate();
  return status;
}

test("an upgrade on another path is answered 404", async (t) => {
  const gateway = await serve(t);
  assert.equal(await upgradeStatus(gateway.wsUrl), 101);
  assert.equal(await upgradeStatus(`${gateway.wsUrl}/other`), 404);
  assert.equal(await upgradeStatus(gateway.wsUrl.replace("/graphql", "//")), 404);
});

/* Which origins are foreign is told in test/net/browser-origin.test.ts. */
test("sockets of pages of foreign origins are refused, those of listed origins are not", async (t) => {
  const origin = "https://shop.example";
  const { wsUrl } = await serve(t, {}, { corsOrigins: [origin] });
  assert.equal(await upgradeStatus(wsUrl, { origin }), 101);
  assert.equal(await upgradeStatus(wsUrl), 101);
  assert.equal(await upgradeStatus(wsUrl, { origin: "https://evil.example" }), 403);
  assert.equal(await upgradeStatus(wsUrl, { origin: "null" }), 403);
  const headers = { "sec-fetch-site": "cross-site" };
  assert.equal(await upgradeStatus(wsUrl, { headers }), 403);
});

import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { type TestContext, test } from "node:test";
import { getOperationAST, type OperationDefinitionNode, parse } from "graphql";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentState, PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { prepareOperation } from "../../../src/graphql/prepared-operation.ts";
import { schema } from "../../../src/graphql/schema/schema.ts";
import { until } from "../../until.ts";
import { createFeed, type Feed, paymentEvent, payoutEvent } from "../feed.ts";
import { type Served, serve } from "../serve.ts";
import { rawSocket } from "../socket.ts";

const { SUCCESS } = PaymentStatus;

/** What a client has received so far, one text for each event. */
interface Reader {
  readonly texts: () => string[];
  pause(): void;
  resume(): void;
  close(): void;
}

/** Reads a stream: all blocks but the first, which begins the stream, and the last. */
function byHttp(url: string, accept = "text/event-stream", end = "\n\n"): Reader {
  let text = "";
  let answer: http.IncomingMessage | undefined;
  const request = http.get(url, { agent: false, headers: { accept } }, (response) => {
    answer = response.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    response.on("error", () => undefined);
  });
  request.on("error", () => undefined);
  return {
    texts: () => text.split(end).slice(1, -1),
    pause: () => answer?.pause(),
    resume: () => answer?.resume(),
    close: () => request.destroy(),
  };
}

const parts = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json";
const addressOf = ({ url }: Served, query: string) => `${url}?${new URLSearchParams({ query })}`;

type Open = (t: TestContext, gateway: Served, query: string) => Promise<Reader>;
const readers: Readonly<Record<"sse" | "multipart" | "websocket", Open>> = {
  sse: async (_, gateway, query) => byHttp(addressOf(gateway, query)),
  multipart: async (_, gateway, query) => byHttp(addressOf(gateway, query), parts, "\r\n--graphql"),
  async websocket(t, gateway, query) {
    const { socket, messages, subscribe } = await rawSocket(t, gateway);
    subscribe(query);
    return {
      texts: () => messages.map((message) => JSON.stringify(message)),
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      close: () => socket.terminate(),
    };
  },
};

/** A gateway whose streams are fed by hand: each reads from the feed that `next` made last. */
async function fed(t: TestContext) {
  let feed: Feed = createFeed();
  const watch: Feed["watch"] = (request, call) => feed.watch(request, call);
  const gateway = await serve(t, {
    ...{ watchPayment: watch, watchPayout: watch, streamEvents: watch },
  });
  return {
    gateway,
    next() {
      feed = createFeed();
      return feed;
    },
  };
}

/** The texts of an event that was executed, and of one that was pushed if possible. */
async function bothTexts(feed: Feed, { texts }: Reader, eventOf: EventOf) {
  feed.push(eventOf("c-1"));
  await until(() => texts().length === 1);
  await until(feed.waits);
  const isTaken = feed.offer(eventOf("c-2"));
  if (!isTaken) feed.push(eventOf("c-2"));
  await until(() => texts().length === 2);
  const [first, second] = texts();
  return { first, second, isTaken };
}

type EventOf = (cursor: string) => Event;
const payment: EventOf = (cursor) => ({
  ...paymentEvent(cursor, SUCCESS),
  state: PaymentState.PAID,
});
const payout: EventOf = (cursor) => payoutEvent(cursor, "success – “пройшло” \n\n");
/** An event that lacks what is never null, so that its result has an error. */
const undated: EventOf = (cursor) => {
  const event = payment(cursor);
  delete event.receivedAt;
  return event;
};
const withId =
  (length: number): EventOf =>
  (cursor) => ({ ...payment(cursor), paymentId: "ü".repeat(length) });
const ofPayment = (selection: string) =>
  `subscription ($id: ID! = "order-1") { paymentUpdated(externalId: $id) { ${selection} } }`;

/** Documents, and whether identical subscriptions share their results. */
const documents: readonly (readonly [query: string, shares: boolean, eventOf?: EventOf])[] = [
  [ofPayment("cursor"), true],
  [ofPayment("__typename final: cursor kind source receivedAt state callOutcome externalId"), true],
  [ofPayment("payment { externalId isSuccess operation actionRequired }"), true],
  [ofPayment("payment { details { status statusCode amount } }"), true],
  [ofPayment("payment { details { ...Of } action { __typename } }") + fragment(), true],
  [
    ofPayment(
      "a: payment { projectId } b: payment { externalId } ... on PaymentEvent { paymentId }",
    ),
    true,
  ],
  [ofPayment("payment { customer { email } batchExternalId }"), true],
  [
    `subscription Named { events(kinds: [PAYMENT]) { cursor ... on PaymentEvent { state } } }`,
    true,
  ],
  [
    `subscription { events { __typename cursor ... on PayoutEvent { payout { status } } } }`,
    true,
    payout,
  ],
  [
    `subscription { payoutUpdated(externalId: "x") { transactionId payout { status externalId } } }`,
    true,
    payout,
  ],
  [ofPayment("cursor @include(if: true) payment @skip(if: true) { operation }"), true],
  // Each with another length of a WebSocket's frame.
  ...[60, 200, 70_000].map((length) => [ofPayment("paymentId"), true, withId(length)] as const),
  [ofPayment("cursor receivedAt"), false, undated],
];

function fragment(): string {
  return " fragment Of on PaymentDetails { status operationId }";
}

for (const [transport, open] of Object.entries(readers)) {
  test(`an event pushed by ${transport} has the text of one that is executed`, async (t) => {
    const { gateway, next } = await fed(t);
    for (const [query, shares, eventOf = payment] of documents) {
      const feed = next();
      const client = await open(t, gateway, query);
      const { first = "", second, isTaken } = await bothTexts(feed, client, eventOf);
      assert.equal(isTaken, shares, query);
      assert.equal(second, first.replaceAll("c-1", "c-2"), query);
      client.close();
      await feed.released;
      assert.equal(feed.offer(eventOf("c-3")), false, "nothing is written behind the end");
    }
  });
}

test("an event pushed to a plain watch has the same text as one that is not pushed", async (t) => {
  const { gateway, next } = await fed(t);
  for (const [path, eventOf] of [
    ["payments/order-1", payment],
    ["payouts/payout-1", payout],
  ] as const) {
    const feed = next();
    const client = byHttp(`${gateway.watchUrl}/${path}`);
    const { first = "", second, isTaken } = await bothTexts(feed, client, eventOf);
    assert.equal(isTaken, true);
    assert.equal(second, first.replaceAll("c-1", "c-2"));
    client.close();
  }
});

test("no event is pushed before the beginning of a stream", async (t) => {
  let early: boolean | undefined;
  const gateway = await serve(t, {
    async *watchPayment(_, { onOpen, push }) {
      onOpen?.("c-0");
      early = push?.(payment("c-1"));
      yield payment("c-1");
    },
  });
  const { text } = await gateway.get(`${gateway.watchUrl}/payments/order-1`);
  assert.equal(early, false);
  assert.match(text, /^retry: \d+\nid: c-0\n\nid: c-1\ndata: /);
});

test("no event is pushed to a client that does not read, and it misses none when it reads on", async (t) => {
  const { gateway, next } = await fed(t);
  const large = (cursor: string) => ({ ...payment(cursor), paymentId: "x".repeat(100_000) });
  for (const [transport, open] of Object.entries(readers)) {
    const feed = next();
    const client = await open(t, gateway, ofPayment("cursor paymentId"));
    const seen = () => client.texts().map((text) => /"cursor":"(c-\d+)"/.exec(text)?.[1]);
    feed.push(payment("c-1"));
    await until(() => seen().length === 1 && feed.waits());
    client.pause();
    let count = 1;
    while (count < 1_000 && feed.offer(large(`c-${count + 1}`))) count += 1;
    assert.ok(count > 1 && count < 1_000, `${count} were taken by ${transport}`);
    count += 1;
    feed.push(large(`c-${count}`));
    client.resume();
    await until(() => feed.waits() && seen().length === count);
    await until(() => feed.offer(large(`c-${count + 1}`)));
    await until(() => seen().length === count + 1);
    assert.deepEqual(
      seen(),
      Array.from({ length: count + 1 }, (_, index) => `c-${index + 1}`),
    );
    client.close();
    await feed.released;
  }
});

test("no event is pushed to a response without chunks", async (t) => {
  const { gateway, next } = await fed(t);
  const feed = next();
  const { hostname, port } = new URL(gateway.watchUrl);
  let text = "";
  const client = net.connect(Number(port), hostname);
  client.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  client.write(`GET /watch/payments/order-1 HTTP/1.0\r\nhost: ${hostname}:${port}\r\n\r\n`);
  feed.push(payment("c-1"));
  await until(() => text.includes("id: c-1\n") && feed.waits());
  assert.equal(feed.offer(payment("c-2")), false);
  feed.push(payment("c-2"));
  await until(() => text.includes("id: c-2\n"));
  client.destroy();
  await feed.released;
});

test("identical subscriptions share one result, and its text in each format", () => {
  const document = parse(
    "subscription ($id: ID!) { paymentUpdated(externalId: $id) { cursor state } }",
  );
  const node = getOperationAST(document) as OperationDefinitionNode;
  const operation = prepareOperation(schema, document, node, () => {});
  const ask = (id: string) => operation.resultOf({ sources: {}, coerced: { id } });
  const [one, same, other] = ["a", "a", "b"].map(ask);
  const event = payment("c-1");
  assert.ok(one && same && other);
  assert.equal(one(event), same(event));
  assert.notEqual(one(event), other(event));
  assert.equal(one(event), same(event), "also where others ask otherwise between");
  const forms = (json: string) => Buffer.from(json);
  assert.equal(one(event)?.as(forms), same(event)?.as(forms));
  assert.notEqual(one(payment("c-2")), one(event));
});

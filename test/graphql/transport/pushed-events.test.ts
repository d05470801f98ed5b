import assert from "node:assert/strict";
import http from "node:http";
import net from "node:net";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { parse, validate } from "graphql";
import WebSocket from "ws";
import type { Core } from "../../../src/core/core.ts";
import type { Event } from "../../../src/gen/payments/v1/event_pb.ts";
import { OperationSchema } from "../../../src/gen/payments/v1/operation_pb.ts";
import { PaymentState, PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { GetPaymentResponseSchema } from "../../../src/gen/payments/v1/payment_service_pb.ts";
import { schema } from "../../../src/graphql/schema/schema.ts";
import { resultsOf } from "../../../src/graphql/shared-results.ts";
import { until } from "../../until.ts";
import { createFeed, type Feed, paymentEvent, payoutEvent } from "../feed.ts";
import { type Served, serve } from "../serve.ts";

const { PENDING, SUCCESS } = PaymentStatus;

interface Request {
  readonly query: string;
  readonly variables?: Readonly<Record<string, unknown>>;
}

/** What a client has received so far, one text for each event. */
interface Reader {
  readonly texts: () => string[];
  pause(): void;
  resume(): void;
  close(): void;
}

type Open = (gateway: Served, request: Request) => Reader;

function readBody(
  textsOf: (text: string) => string[],
  url: string,
  options: http.RequestOptions = {},
  body?: string,
): Reader {
  let text = "";
  let answer: http.IncomingMessage | undefined;
  const request = http.request(url, { agent: false, ...options }, (response) => {
    answer = response.setEncoding("utf8").on("data", (chunk) => {
      text += chunk;
    });
    response.on("error", () => undefined);
  });
  request.on("error", () => undefined);
  request.end(body);
  return {
    texts: () => textsOf(text),
    pause: () => answer?.pause(),
    resume: () => answer?.resume(),
    close: () => request.destroy(),
  };
}

const post = (
  accept: string,
  textsOf: (text: string) => string[],
  { url }: Served,
  request: Request,
) => {
  const headers = { accept, "content-type": "application/json" };
  return readBody(textsOf, url, { method: "POST", headers }, JSON.stringify(request));
};
/** All blocks but the first, which begins the stream, and the last, which is incomplete. */
const blocksOf = (text: string) => text.split("\n\n").slice(1, -1);
const partsOf = (text: string) => text.split("\r\n--graphql").slice(1, -1);

const transports = {
  sse: (gateway, request) => post("text/event-stream", blocksOf, gateway, request),
  multipart: (gateway, request) =>
    post("multipart/mixed;subscriptionSpec=1.0", partsOf, gateway, request),
  websocket({ wsUrl }, payload) {
    const texts: string[] = [];
    const socket = new WebSocket(wsUrl, "graphql-transport-ws");
    socket.on("open", () => socket.send('{"type":"connection_init"}'));
    socket.on("message", (data) => {
      const text = String(data);
      if (text.includes("connection_ack")) {
        socket.send(JSON.stringify({ id: 'the "first"', type: "subscribe", payload }));
      } else texts.push(text);
    });
    return {
      texts: () => texts,
      pause: () => socket.pause(),
      resume: () => socket.resume(),
      close: () => socket.terminate(),
    };
  },
} satisfies Readonly<Record<string, Open>>;

/** A gateway whose streams are fed by hand: each reads from the feed that `next` made last. */
async function fed(t: TestContext) {
  let feed: Feed = createFeed();
  const watch: Feed["watch"] = (request, call) => feed.watch(request, call);
  const core: Partial<Core> = {
    watchPayment: watch,
    watchPayout: watch,
    streamEvents: watch,
    getOperation: async () => create(OperationSchema, {}),
    paymentEvents: async () => [paymentEvent("c-0", PENDING)],
    getPayment: async () =>
      create(GetPaymentResponseSchema, {
        payment: { id: "p-1" },
        operations: [{ operationId: "op-1" }],
      }),
  };
  const gateway = await serve(t, core);
  return {
    gateway,
    next() {
      feed = createFeed();
      return feed;
    },
  };
}

/** The texts of an event that passed the engine, and of one that was pushed past it if possible. */
async function bothTexts(feed: Feed, { texts }: Reader, eventOf: (cursor: string) => Event) {
  feed.push(eventOf("c-1"));
  await until(() => texts().length === 1);
  await until(feed.waits);
  const isTaken = feed.offer(eventOf("c-2"));
  if (!isTaken) feed.push(eventOf("c-2"));
  await until(() => texts().length === 2);
  const [first, second] = texts();
  return { first, second, isTaken };
}

const payment = (cursor: string) => {
  const event = paymentEvent(cursor, SUCCESS);
  event.state = PaymentState.PAID;
  return event;
};
/** An event that lacks what is never null, so that its result has an error. */
const undated = (cursor: string) => {
  const event = payment(cursor);
  delete event.receivedAt;
  return event;
};
const payout = (cursor: string) => payoutEvent(cursor, "success – “пройшло” \n\n");

const ofPayment = (selection: string) =>
  `subscription ($id: ID! = "order-1") { paymentUpdated(externalId: $id) { ${selection} } }`;

/** Documents, and whether identical subscriptions share their results. */
const documents: readonly (readonly [query: string, shares: boolean, eventOf?: typeof payment])[] =
  [
    [ofPayment("cursor"), true],
    [
      ofPayment("__typename final: cursor kind source receivedAt state callOutcome externalId"),
      true,
    ],
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
    [ofPayment("cursor receivedAt"), false, undated],
    [ofPayment("cursor receivedAt @skip(if: true)"), true, undated],
  ];

function fragment(): string {
  return " fragment Of on PaymentDetails { status operationId }";
}

for (const [transport, open] of Object.entries(transports)) {
  test(`an event pushed by ${transport} has the text that the engine would produce`, async (t) => {
    const { gateway, next } = await fed(t);
    for (const [query, shares, eventOf = payment] of documents) {
      assert.deepEqual(validate(schema, parse(query)), []);
      const feed = next();
      const client = open(gateway, { query });
      const { first = "", second, isTaken } = await bothTexts(feed, client, eventOf);
      assert.equal(isTaken, shares, query);
      assert.equal(second, first.replaceAll("c-1", "c-2"), query);
      client.close();
      await feed.released;
      assert.equal(feed.offer(eventOf("c-3")), false, "nothing is written behind the end");
    }
  });
}

test("a result longer than a frame of 64 KiB is pushed completely", async (t) => {
  const { gateway, next } = await fed(t);
  for (const length of [60, 200, 70_000]) {
    const feed = next();
    const client = transports.websocket(gateway, { query: ofPayment("cursor paymentId") });
    const eventOf = (cursor: string) => ({ ...payment(cursor), paymentId: "ü".repeat(length) });
    const { first = "", second, isTaken } = await bothTexts(feed, client, eventOf);
    assert.equal(isTaken, true);
    assert.equal(second, first.replaceAll("c-1", "c-2"));
    client.close();
  }
});

test("an event pushed to a plain watch has the same text as one that is not pushed", async (t) => {
  const { gateway, next } = await fed(t);
  for (const [path, eventOf] of [
    ["payments/order-1", payment],
    ["payouts/payout-1", payout],
  ] as const) {
    const feed = next();
    const client = readBody(blocksOf, `${gateway.watchUrl}/${path}`);
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
  const text = await (await fetch(`${gateway.watchUrl}/payments/order-1`)).text();
  assert.equal(early, false);
  assert.match(text, /^retry: \d+\nid: c-0\n\nid: c-1\ndata: /);
});

test("pushed events keep their order among the others, and the end comes last", async (t) => {
  const { gateway, next } = await fed(t);
  for (const [transport, open] of Object.entries(transports)) {
    const feed = next();
    const client = open(gateway, { query: ofPayment("cursor") });
    feed.push(payment("c-1"));
    await until(() => client.texts().length === 1 && feed.waits());
    assert.equal(feed.offer(payment("c-2")), true);
    assert.equal(feed.offer(payment("c-3")), true);
    feed.push(payment("c-4"));
    await until(feed.waits);
    await until(() => client.texts().length === 4);
    assert.equal(feed.offer(payment("c-5")), true);
    feed.finish();
    await until(() => client.texts().length >= 5);
    const cursors = client.texts().map((text) => /"cursor":"(c-\d)"/.exec(text)?.[1]);
    assert.deepEqual(cursors.slice(0, 5), ["c-1", "c-2", "c-3", "c-4", "c-5"], transport);
    client.close();
  }
});

test("no event is pushed to a client that does not read, and it misses none when it reads on", async (t) => {
  const { gateway, next } = await fed(t);
  const large = (cursor: string) => ({ ...payment(cursor), paymentId: "x".repeat(100_000) });
  for (const transport of ["sse", "websocket"] as const) {
    const feed = next();
    const client = transports[transport](gateway, { query: ofPayment("cursor paymentId") });
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
  const document = parse(ofPayment("cursor state"));
  const ask = (id: string) => resultsOf({ schema, document, variableValues: { id } });
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

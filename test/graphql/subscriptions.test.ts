import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient as createSseClient } from "graphql-sse";
import { GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { StreamEventsRequestSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentState, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import { WatchPayoutRequestSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { until } from "../until.ts";
import { valuesOf } from "../values-of.ts";
import { createFeed, type Feed, paymentEvent, payoutEvent } from "./feed.ts";
import { partsOf, subscribeInParts } from "./parts.ts";
import { type Answer, type Served, serve } from "./serve.ts";
import { socketClient } from "./socket.ts";

const { PENDING, SUCCESS } = PaymentStatus;
const watchPayment = `subscription { paymentUpdated(externalId: "order-1") {
  cursor final payment { details { status } }
} }`;

/** Errors that end a stream, and what a client is told of them. */
const endings: readonly [thrown: Error, message: string, extensions: object][] = [
  [
    new GatewayError("UNAVAILABLE", "the gateway is shutting down", { resumeCursor: "c-1" }),
    "the gateway is shutting down",
    { code: "UPSTREAM_UNAVAILABLE", resumeCursor: "c-1" },
  ],
  [new TypeError("the inside"), "internal error", { code: "INTERNAL_SERVER_ERROR" }],
];

type Iterate = (query: string) => AsyncIterableIterator<Answer>;

/** The transports, each with the client that browsers use. */
const transports: Record<string, (t: TestContext, gateway: Served) => Iterate> = {
  SSE: (t, { url }) => {
    const client = createSseClient({ url, retryAttempts: 0 });
    t.after(() => client.dispose());
    return (query) => client.iterate({ query });
  },
  WebSocket: (t, gateway) => {
    const client = socketClient(t, gateway);
    return (query) => client.iterate({ query });
  },
  multipart: (_, gateway) => (query) => partsOf(gateway, query),
};

for (const [name, connect] of Object.entries(transports)) {
  const start = async (t: TestContext, feed: Feed) => {
    const gateway = await serve(t, {
      watchPayment: feed.watch,
      watchPayout: feed.watch,
      streamEvents: feed.watch,
    });
    return connect(t, gateway);
  };

  test(`${name} delivers each event at once, pushed or not, and then the end`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    const delivered = async (cursor: string, status: "PENDING" | "SUCCESS") => {
      const told = { cursor, final: status === "SUCCESS", payment: { details: { status } } };
      assert.deepEqual((await events.next()).value, { data: { paymentUpdated: told } });
    };
    feed.push(paymentEvent("c-1", PENDING));
    await delivered("c-1", "PENDING");
    await until(feed.waits);
    assert.equal(feed.offer(paymentEvent("c-2", PENDING)), true);
    assert.equal(feed.offer(paymentEvent("c-3", PENDING)), true);
    feed.push(paymentEvent("c-4", PENDING));
    for (const cursor of ["c-2", "c-3", "c-4"]) await delivered(cursor, "PENDING");
    await until(feed.waits);
    assert.equal(feed.offer(paymentEvent("c-5", SUCCESS)), true);
    feed.finish();
    await delivered("c-5", "SUCCESS");
    assert.equal((await events.next()).done, true);
    await feed.released;
  });

  for (const [thrown, message, extensions] of endings) {
    test(`${name} delivers a ${thrown.name} that ends a stream as ${message}`, async (t) => {
      const feed = createFeed();
      const events = (await start(t, feed))(watchPayment);
      feed.push(paymentEvent("c-1", PENDING));
      await events.next();
      feed.fail(thrown);
      const { value } = await events.next();
      assert.equal(value.data ?? null, null);
      assert.equal(value.payload, name === "multipart" ? null : undefined);
      assert.equal(value.errors[0].message, message);
      assert.deepEqual(value.errors[0].extensions, extensions);
      assert.equal((await events.next()).done, true);
      await feed.released;
    });
  }

  test(`${name} delivers events of both kinds as they were told, under their externalId`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(
      `subscription { events(after: "earliest", kinds: [PAYMENT, PAYOUT]) {
        __typename kind cursor
        ... on PaymentEvent { paymentId state payment { externalId details { status } } }
        ... on PayoutEvent { transactionId payoutState: state payout { externalId status } }
      } }`,
    );
    const payment = { ...paymentEvent("c-1", PENDING), state: PaymentState.PAID };
    const payout = { ...payoutEvent("c-2", "sent"), state: PaymentState.PAID };
    feed.push(payment, { ...payout, payoutState: PayoutState.PAID });
    assert.deepEqual((await events.next()).value.data.events, {
      ...{ __typename: "PaymentEvent", kind: "PAYMENT", cursor: "c-1", paymentId: "pay-1" },
      state: "PAID",
      payment: { externalId: "order-1", details: { status: "PENDING" } },
    });
    assert.deepEqual((await events.next()).value.data.events, {
      ...{ __typename: "PayoutEvent", kind: "PAYOUT", cursor: "c-2", transactionId: "tx-1" },
      payoutState: "PAID",
      payout: { externalId: "payout-1", status: "sent" },
    });
    const { call } = await feed.opened;
    assert.deepEqual([call.deadlineMs, call.transport], [undefined, name.toLowerCase()]);
    await events.return?.();
  });
}

test("the arguments of a subscription reach the core", async (t) => {
  const none = async function* () {};
  const gateway = await serve(t, { watchPayout: none, streamEvents: none });
  const asked = [
    'payoutUpdated(externalId: "p", after: "c-0", untilFinal: true)',
    'payoutUpdated(externalId: "p", after: "earliest")',
    'events(after: "earliest", kinds: [PAYMENT, PAYOUT])',
  ];
  for (const field of asked) {
    const query = `subscription { ${field} { cursor } }`;
    await (await gateway.post({ query }, { accept: "text/event-stream" })).text();
  }
  assert.deepEqual(valuesOf(gateway.seen(), "request"), [
    create(WatchPayoutRequestSchema, { externalId: "p", afterCursor: "c-0", untilFinal: true }),
    create(WatchPayoutRequestSchema, { externalId: "p", fromStart: true }),
    create(StreamEventsRequestSchema, {
      afterCursor: "earliest",
      kinds: [EventKind.PAYMENT, EventKind.PAYOUT],
    }),
  ]);
});

test("the stream of a client that stops reading and then leaves is released", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const leave = new AbortController();
  const query = `subscription { paymentUpdated(externalId: "order-1") {
    payment { details { description } } } }`;
  const answer = gateway.post({ query }, { accept: "text/event-stream" }, leave.signal);
  await feed.opened;
  const large = paymentEvent("c-1", PENDING);
  if (large.resource.case === "payment" && large.resource.value.details) {
    large.resource.value.details.description = "x".repeat(1_000_000);
  }
  feed.push(...Array.from({ length: 40 }, () => large));
  await answer;
  leave.abort();
  await feed.released;
  // The heartbeat timer must stop too: it would keep what belongs to the stream in memory.
  const deadlineMs = performance.now() + 20_000;
  while (timers() > before) {
    assert.ok(performance.now() < deadlineMs, "a timer is left");
    await new Promise((resolve) => setImmediate(resolve));
  }
});

test("the first format in the accept header is used, and 406 is the answer where none is", async (t) => {
  for (const [asked, type] of [
    ['multipart/mixed; subscriptionSpec="1.0"', "multipart/mixed"],
    ["multipart/mixed;subscriptionSpec=1.0, text/event-stream", "multipart/mixed"],
    ["text/event-stream, multipart/mixed;subscriptionSpec=1.0", "text/event-stream"],
    ["*/*", "text/event-stream"],
    ["multipart/mixed", undefined],
    ["multipart/mixed;subscriptionSpec=2.0", undefined],
  ] as const) {
    const feed = createFeed();
    feed.finish();
    const gateway = await serve(t, { watchPayment: feed.watch });
    const response = await subscribeInParts(gateway, watchPayment, { accept: asked });
    assert.equal(response.status, type ? 200 : 406, asked);
    if (type) assert.equal(response.headers.get("content-type")?.split(";")[0], type, asked);
    await response.text();
  }
});

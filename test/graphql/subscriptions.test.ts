import assert from "node:assert/strict";
import { request as httpRequest } from "node:http";
import { type TestContext, test } from "node:test";
import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWsClient } from "graphql-ws";
import WebSocket from "ws";
import { GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import type { WatchPayoutRequest } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { createFeed, type Feed, paymentEvent, payoutEvent } from "./feed.ts";
import { type Answer, type Served, serve } from "./serve.ts";

const { PENDING, SUCCESS } = PaymentStatus;
const watchPayment = `subscription { paymentUpdated(externalId: "order-1") {
  cursor final payment { details { status } }
} }`;
const pendingJson = {
  cursor: "c-1",
  final: false,
  payment: { details: { status: "PENDING" } },
};
const successJson = { cursor: "c-2", final: true, payment: { details: { status: "SUCCESS" } } };

type Iterate = (query: string) => AsyncIterableIterator<Answer>;

/** The two transports, each with the client library that browsers use. */
const transports: Record<string, (t: TestContext, gateway: Served) => Iterate> = {
  SSE: (t, { url }) => {
    const client = createSseClient({ url, retryAttempts: 0 });
    t.after(() => client.dispose());
    return (query) => client.iterate({ query });
  },
  WebSocket: (t, { wsUrl }) => {
    const client = createWsClient({ url: wsUrl, webSocketImpl: WebSocket, retryAttempts: 0 });
    t.after(() => client.dispose());
    return (query) => client.iterate({ query });
  },
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

  test(`${name} delivers each event at once, then the end`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    feed.push(paymentEvent("c-1", PENDING));
    assert.deepEqual((await events.next()).value, { data: { paymentUpdated: pendingJson } });
    feed.push(paymentEvent("c-2", SUCCESS));
    assert.deepEqual((await events.next()).value, { data: { paymentUpdated: successJson } });
    feed.finish();
    assert.equal((await events.next()).done, true);
    await feed.released;
  });

  test(`${name} delivers the error that ends a stream, with the resume cursor`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    feed.push(paymentEvent("c-1", PENDING));
    await events.next();
    feed.fail(
      new GatewayError("UNAVAILABLE", "the gateway is shutting down", { resumeCursor: "c-1" }),
    );
    const { value } = await events.next();
    assert.equal(value.data ?? null, null);
    assert.equal(value.errors[0].message, "the gateway is shutting down");
    assert.deepEqual(value.errors[0].extensions, {
      code: "UPSTREAM_UNAVAILABLE",
      resumeCursor: "c-1",
    });
    assert.equal((await events.next()).done, true);
    await feed.released;
  });

  test(`${name} masks an unexpected error of a stream`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    feed.fail(new TypeError("the inside of the gateway"));
    const { value } = await events.next();
    assert.equal(value.errors[0].message, "internal error");
    assert.equal((await events.next()).done, true);
  });

  test(`${name} releases the core's stream when the client leaves`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    feed.push(paymentEvent("c-1", PENDING));
    await events.next();
    await events.return?.();
    await feed.released;
    assert.equal((await feed.opened).call.signal.aborted, true);
  });

  test(`${name} releases a stream that has sent no event`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(watchPayment);
    void events.next().catch(() => undefined);
    await feed.opened;
    await events.return?.();
    await feed.released;
  });

  test(`${name} begins with the oldest event of a payout after the cursor "earliest"`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(
      `subscription { payoutUpdated(externalId: "payout-1", after: "earliest") { cursor } }`,
    );
    feed.push(payoutEvent("c-1", "pending"));
    await events.next();
    const { fromStart, afterCursor } = (await feed.opened).request as WatchPayoutRequest;
    assert.deepEqual([fromStart, afterCursor], [true, undefined]);
    await events.return?.();
  });

  test(`${name} passes the arguments to the core, without a deadline`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(
      `subscription { payoutUpdated(externalId: "payout-1", after: "c-0", untilFinal: true) {
        __typename transactionId payout { status }
      } }`,
    );
    feed.push(payoutEvent("c-1", "pending"));
    assert.deepEqual((await events.next()).value.data, {
      payoutUpdated: {
        __typename: "PayoutEvent",
        transactionId: "tx-1",
        payout: { status: "pending" },
      },
    });
    const { request, call } = await feed.opened;
    assert.deepEqual(request, {
      $typeName: "payments.v1.WatchPayoutRequest",
      externalId: "payout-1",
      afterCursor: "c-0",
      fromStart: false,
      untilFinal: true,
    });
    assert.equal(call.deadlineMs, undefined);
    await events.return?.();
  });

  test(`${name} delivers events of both kinds on one stream`, async (t) => {
    const feed = createFeed();
    const events = (await start(t, feed))(
      `subscription { events(after: "earliest", kinds: [PAYMENT, PAYOUT]) {
        __typename kind cursor
        ... on PaymentEvent { paymentId }
        ... on PayoutEvent { transactionId }
      } }`,
    );
    feed.push(paymentEvent("c-1", PENDING), payoutEvent("c-2", "pending"));
    assert.deepEqual((await events.next()).value.data, {
      events: { __typename: "PaymentEvent", kind: "PAYMENT", cursor: "c-1", paymentId: "pay-1" },
    });
    assert.deepEqual((await events.next()).value.data, {
      events: { __typename: "PayoutEvent", kind: "PAYOUT", cursor: "c-2", transactionId: "tx-1" },
    });
    assert.deepEqual((await feed.opened).request, {
      $typeName: "payments.v1.StreamEventsRequest",
      afterCursor: "earliest",
      kinds: [EventKind.PAYMENT, EventKind.PAYOUT],
    });
    await events.return?.();
  });
}

test("a payment and a payout are shown as the event told them, under the event's externalId", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { streamEvents: feed.watch });
  const client = createSseClient({ url: gateway.url, retryAttempts: 0 });
  const events: AsyncIterableIterator<Answer> = client.iterate({
    query: `subscription { events {
      ... on PaymentEvent { state payment { externalId details { status } } }
      ... on PayoutEvent { payoutState: state payout { externalId status } }
    } }`,
  });
  const payment = {
    ...paymentEvent("c-1", PENDING),
    externalId: "order-1",
    state: PaymentState.PAID,
  };
  const payout = {
    ...payoutEvent("c-2", "sent"),
    externalId: "payout-1",
    state: PaymentState.PAID,
  };
  feed.push(payment, { ...payout, payoutState: PayoutState.PAID });
  assert.deepEqual((await events.next()).value.data.events, {
    state: "PAID",
    payment: { externalId: "order-1", details: { status: "PENDING" } },
  });
  assert.deepEqual((await events.next()).value.data.events, {
    payoutState: "PAID",
    payout: { externalId: "payout-1", status: "sent" },
  });
  client.dispose();
  await feed.released;
});

test("a plain fetch reads the events of the graphql-sse protocol", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  feed.push(paymentEvent("c-1", PENDING));
  feed.finish();
  const response = await gateway.post({ query: watchPayment }, { accept: "text/event-stream" });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  assert.equal(response.headers.get("x-ratelimit-limit"), null);
  const text = await response.text();
  assert.equal(
    text.replace(/^retry: \d+\n\n/, ""),
    `id: c-1\nevent: next\ndata: ${JSON.stringify({ data: { paymentUpdated: pendingJson } })}\n\nevent: complete\ndata:\n\n`,
  );
});

test("a GET by an EventSource runs a subscription", async (t) => {
  const feed = createFeed();
  const asked: (string | undefined)[] = [];
  const gateway = await serve(
    t,
    { watchPayment: feed.watch },
    {
      identify: async ({ watchToken }) => {
        asked.push(watchToken);
        return { name: "holder", account: "default", scopes: new Set() };
      },
    },
  );
  feed.finish();
  const url = `${gateway.url}?query=${encodeURIComponent(watchPayment)}&watch_token=jwt`;
  const response = await fetch(url, { headers: { accept: "text/event-stream" } });
  assert.match(await response.text(), /event: complete/);
  assert.deepEqual(asked, ["jwt"]);
});

test("the stream of a client that stops reading and then leaves is released", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length;
  const before = timers();
  const request = httpRequest(gateway.url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "text/event-stream" },
  });
  request.on("error", () => undefined);
  request.end(
    JSON.stringify({
      query: `subscription { paymentUpdated(externalId: "order-1") {
    payment { details { description } } } }`,
    }),
  );
  await feed.opened;
  const large = paymentEvent("c-1", PENDING);
  if (large.resource.case === "payment" && large.resource.value.details) {
    large.resource.value.details.description = "x".repeat(1_000_000);
  }
  feed.push(...Array.from({ length: 40 }, () => large));
  await new Promise((resolve) => request.once("response", resolve));
  request.destroy();
  await feed.released;
  // The heartbeat timer must stop too: it would keep what belongs to the stream in memory.
  const deadlineMs = performance.now() + 20_000;
  while (timers() > before) {
    assert.ok(performance.now() < deadlineMs, "a timer is left");
    await new Promise((resolve) => setImmediate(resolve));
  }
});

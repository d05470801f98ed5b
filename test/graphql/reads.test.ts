import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "graphql-sse";
import { GatewayError } from "../../src/errors.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { type PaymentOperation, PaymentStatus } from "../../src/gen/payments/v1/payment_pb.ts";
import { GetConfirmationStatusRequestSchema } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { emptyPage } from "../fake-core.ts";
import { until } from "../until.ts";
import { valuesOf } from "../values-of.ts";
import { createFeed, type Feed, paymentEvent } from "./feed.ts";
import { serve } from "./serve.ts";

test("an integer is a number up to 2^53, and beyond that a string", async (t) => {
  let fcId = 42n;
  const gateway = await serve(t, {
    getPayout: async () => ({ payout: { fcId } }),
  });
  const query = `{ payout(externalId: "x") { fcId } }`;
  assert.deepEqual(await gateway.run(query), { data: { payout: { fcId: 42 } } });
  fcId = 9007199254740993n;
  assert.deepEqual(await gateway.run(query), { data: { payout: { fcId: `${fcId}` } } });
});

test("a payout is not null if all that is known of it is a call without an answer", async (t) => {
  const told = { outcomeUnknown: true, needsOperator: true };
  const gateway = await serve(t, { getPayout: async () => told });
  const query = '{ payout(externalId: "p") { externalId status outcomeUnknown needsOperator } }';
  const payout = { externalId: "p", status: null, ...told };
  assert.deepEqual(await gateway.run(query), { data: { payout } });
});

test("the confirmation of a wallet item is read for the same customer", async (t) => {
  const gateway = await serve(t, {
    findWalletItems: async () => [{ optionId: "o-1" }],
    getConfirmationStatus: async () => ({ status: "confirmed" }),
  });
  const answer = await gateway.run(
    `{ walletItems(customer: {externalId: "c-1"}) { optionId confirmation { status } } }`,
  );
  assert.deepEqual(answer, {
    data: { walletItems: [{ optionId: "o-1", confirmation: { status: "confirmed" } }] },
  });
  assert.deepEqual(
    gateway.seen()[1]?.request,
    create(GetConfirmationStatusRequestSchema, {
      customer: { externalId: "c-1" },
      optionId: "o-1",
    }),
  );
});

test("a wallet call without a customer leaves the customer to the caller's token", async (t) => {
  const gateway = await serve(t, {
    getConfirmationStatus: async () => ({ status: "new" }),
    findWalletItems: async () => [],
  });
  assert.deepEqual(
    await gateway.run(
      `{ walletItems(optionId: "true") { name } walletConfirmation(optionId: "o") { status } }`,
    ),
    { data: { walletItems: [], walletConfirmation: { status: "new" } } },
  );
  assert.deepEqual(valuesOf(gateway.seen(), "request"), [
    { $typeName: "payments.v1.FindWalletItemsRequest", optionId: "true" },
    { $typeName: "payments.v1.GetConfirmationStatusRequest", optionId: "o" },
  ]);
});

test("a payment links to its operation and to its events", async (t) => {
  const gateway = await serve(t, {
    getPayment: async ({ externalId }) => ({
      payment: { externalId, details: { operationId: "op-1" } },
    }),
    getOperation: async () => ({ id: "op-1" }),
    listEvents: async () => ({
      edges: [2, 1].map((n) => ({
        cursor: "",
        node: paymentEvent(`c-${n}`, PaymentStatus.SUCCESS),
      })),
      ...{ hasNextPage: false, hasPreviousPage: false },
    }),
  });
  const answer = await gateway.run(`{ payment(externalId: "order-1") {
    operationInfo { id }
    events(first: 3) {
      __typename cursor kind externalId paymentId source receivedAt final
      payment { details { status } }
    }
  } }`);
  const event = (cursor: string) => ({
    ...{ __typename: "PaymentEvent", cursor, kind: "PAYMENT", externalId: "order-1" },
    ...{ paymentId: "pay-1", source: "CALLBACK", receivedAt: "2026-11-21T10:00:00Z", final: true },
    payment: { details: { status: "SUCCESS" } },
  });
  assert.deepEqual(answer, {
    data: { payment: { operationInfo: { id: "op-1" }, events: [event("c-1"), event("c-2")] } },
  });
  const events = gateway.seen().find(({ method }) => method === "listEvents");
  const page = { pageSize: 3, pageToken: "", newestFirst: true };
  assert.deepEqual(events?.request, {
    ...{ $typeName: "payments.v1.ListEventsRequest", kind: EventKind.PAYMENT },
    ...{ externalId: "order-1", ...page },
  });
});

test("an eventsConnection asks for a page of its kind's events, and says where that stands", async (t) => {
  const edges = [2, 1].map((n) => ({
    cursor: `p-${n}`,
    node: paymentEvent(`c-${n}`, PaymentStatus.SUCCESS),
  }));
  const gateway = await serve(t, {
    getPayment: async () => ({ payment: { externalId: "e" } }),
    getPayout: async () => ({ payout: { externalId: "e" } }),
    listEvents: async ({ newestFirst: more }) => ({
      ...{ edges, hasNextPage: more, hasPreviousPage: true },
      endCursor: more ? "p-0" : undefined,
    }),
  });
  const page = `edges { cursor node { cursor } }
    pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;
  const { data } = await gateway.run(`{
    payment(externalId: "e") { eventsConnection(first: 2, after: "p-3", newestFirst: true) { ${page} } }
    payout(externalId: "e") { eventsConnection { ${page} } }
  }`);
  const told = (hasNextPage: boolean, endCursor: string) => ({
    edges: [2, 1].map((n) => ({ cursor: `p-${n}`, node: { cursor: `c-${n}` } })),
    pageInfo: { hasNextPage, hasPreviousPage: true, startCursor: "p-2", endCursor },
  });
  assert.deepEqual(data.payment.eventsConnection, told(true, "p-0"));
  assert.deepEqual(data.payout.eventsConnection, told(false, "p-1"));
  const asked = gateway.seen().filter(({ method }) => method === "listEvents");
  const of = { $typeName: "payments.v1.ListEventsRequest", externalId: "e" };
  const { PAYMENT, PAYOUT } = EventKind;
  assert.deepEqual(valuesOf(asked, "request"), [
    { ...of, kind: PAYMENT, pageSize: 2, pageToken: "p-3", newestFirst: true },
    { ...of, kind: PAYOUT, pageSize: 20, pageToken: "", newestFirst: false },
  ]);
});

test("links of a payment without an operation, or to a missing one, are null or empty", async (t) => {
  const gateway = await serve(t, {
    getPayment: async ({ externalId }) => ({
      payment: externalId === "bare" ? {} : { externalId, details: { operationId: "op" } },
    }),
    getOperation: () => Promise.reject(new GatewayError("NOT_FOUND", "no such thing")),
    listEvents: emptyPage,
  });
  const { data } = await gateway.run(`{
    bare: payment(externalId: "bare") { externalId operationInfo { id } events { cursor } }
    card: payment(externalId: "card") { operationInfo { id } }
  }`);
  const bare = { externalId: "bare", operationInfo: null, events: [] };
  assert.deepEqual(data, { bare, card: { operationInfo: null } });
});

test("absent fields, unspecified and unknown enum values are null", async (t) => {
  const operation = 99 as PaymentOperation;
  const gateway = await serve(t, {
    getPayment: async () => ({ payment: { details: { status: 0 }, operation, paymentMethod: {} } }),
  });
  const { data } = await gateway.run(`{ payment(externalId: "x") {
    id action { type } isSuccess operation details { status createdAt } paymentMethod { type }
  } }`);
  assert.deepEqual(data.payment, {
    ...{ id: null, action: null, isSuccess: null, operation: null },
    details: { status: null, createdAt: null },
    paymentMethod: { type: null },
  });
});

const inUkrainian = { "accept-language": "uk-UA,uk;q=0.9" };
const words = {
  en: "There is not enough money on the card. Please use another card.",
  uk: "На картці недостатньо коштів. Скористайтеся іншою карткою.",
};

test("a payment that failed has words for the customer in their language, no other has", async (t) => {
  let status: PaymentStatus = PaymentStatus.FAILURE;
  const gateway = await serve(t, {
    getPayment: async () => ({
      payment: { details: { status, statusCode: "insufficient_funds" } },
    }),
  });
  const query = `{ payment(externalId: "order-1") { details { userMessage } } }`;
  const told = async (headers = {}) => (await gateway.run(query, {}, headers)).data.payment.details;
  assert.deepEqual(await told(), { userMessage: words.en });
  assert.deepEqual(await told(inUkrainian), { userMessage: words.uk });
  for (status of [PaymentStatus.PENDING, PaymentStatus.SUCCESS, PaymentStatus.UNSPECIFIED]) {
    assert.deepEqual(await told(inUkrainian), { userMessage: null });
  }
});

test("watchers of one payment are told of its failure each in their own language", async (t) => {
  const feeds = [createFeed(), createFeed()] as const;
  const unopened = [...feeds];
  const gateway = await serve(t, {
    watchPayment: (request, call) => (unopened.shift() as Feed).watch(request, call),
  });
  const event = paymentEvent("c-1", PaymentStatus.FAILURE);
  assert.equal(event.resource.case, "payment");
  Object.assign(event.resource.value.details ?? {}, { statusCode: "insufficient_funds" });
  const query = `subscription { paymentUpdated(externalId: "order-1") { payment { details { userMessage } } } }`;
  for (const [index, headers] of [{}, inUkrainian].entries()) {
    const client = createClient({ url: gateway.url, headers, retryAttempts: 0 });
    t.after(() => client.dispose());
    const events = client.iterate({ query });
    const next = events.next();
    const feed = feeds[index] as Feed;
    await until(() => feed.waits());
    // Past the engine go only results that are the same for every watcher.
    assert.equal(feed.offer(event), false);
    feed.push(event);
    const { value } = await next;
    assert.deepEqual(value?.data, {
      paymentUpdated: { payment: { details: { userMessage: index === 0 ? words.en : words.uk } } },
    });
    const paid = events.next();
    await until(() => feed.waits());
    assert.equal(feed.offer(paymentEvent("c-2", PaymentStatus.SUCCESS)), true);
    const none = { paymentUpdated: { payment: { details: { userMessage: null } } } };
    assert.deepEqual((await paid).value?.data, none);
  }
});

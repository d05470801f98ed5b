import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient } from "graphql-sse";
import {
  type PaymentOperation,
  type PaymentSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { GetPaymentResponseSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { until } from "../until.ts";
import { createFeed, type Feed, paymentEvent } from "./feed.ts";
import { serve } from "./serve.ts";

const known = (payment: MessageInitShape<typeof PaymentSchema>) =>
  create(GetPaymentResponseSchema, { payment });

test("absent fields, unspecified and unknown enum values are null", async (t) => {
  const operation = 99 as PaymentOperation;
  const gateway = await serve(t, {
    getPayment: async () => known({ details: { status: 0 }, operation, paymentMethod: {} }),
  });
  const answer = await gateway.run(
    `{ payment(externalId: "x") {
      id action { type } isSuccess operation details { status createdAt } paymentMethod { type }
    } }`,
  );
  assert.deepEqual(answer, {
    data: {
      payment: {
        id: null,
        action: null,
        isSuccess: null,
        operation: null,
        details: { status: null, createdAt: null },
        paymentMethod: { type: null },
      },
    },
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
    getPayment: async () => known({ details: { status, statusCode: "insufficient_funds" } }),
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

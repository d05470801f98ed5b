import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "graphql-sse";
import {
  FiscalizationStatus,
  type Payment,
  PaymentMethodType,
  PaymentOperation,
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import type { GetPaymentResponse } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { until } from "../until.ts";
import { createFeed, type Feed, paymentEvent } from "./feed.ts";
import { serve } from "./serve.ts";

const everyField = `{ payment(externalId: "order-1") {
  action { type value } actionRequired
  details {
    amount billingOrderId createdAt currency description gatewayOrderId payload paymentId
    processedAt rrn status statusCode statusDescription transactionId operationId authCode
    fee { amount currency } terminalName bankName method recurrentId mid tid recipientIban
    subscriptionId fiscalization { fiscalId fiscalUrl status statusCode statusDescription }
  }
  externalId unifiedExternalId batchExternalId id projectId isSuccess receiptUrl
  paymentMethod {
    type
    ccToken { bankShortName expiresAt mask paymentSystem token binCountry savedCard }
    applePay { bankShortName expiresAt mask paymentSystem token binCountry }
    googlePay { bankShortName expiresAt mask paymentSystem token binCountry }
  }
  customer { browserUserAgent email externalId firstName ipAddress lastName patronym phone }
  operation
} }`;

/** 2026-11-21T10:00:00Z. */
const tenOClock = { seconds: 1795255200n, nanos: 0 };
const card = {
  bankShortName: "Test Bank",
  expiresAt: { seconds: 1924991999n, nanos: 0 },
  mask: "411111******1111",
  paymentSystem: "visa",
  token: "tok-1",
  binCountry: "UA",
};

const payment = create(PaymentSchema, {
  action: { type: "redirect", value: "https://3ds.example/1" },
  actionRequired: true,
  details: {
    amount: "10.10",
    billingOrderId: "billing-1",
    createdAt: tenOClock,
    currency: "EUR",
    description: "Two books",
    gatewayOrderId: "gateway-1",
    payload: "{}",
    paymentId: "pay-1",
    processedAt: { ...tenOClock, nanos: 250_000_000 },
    rrn: "rrn-1",
    status: PaymentStatus.PENDING,
    statusCode: "pending",
    statusDescription: "In progress",
    transactionId: "tx-1",
    operationId: "op-1",
    authCode: "auth-1",
    fee: { amount: "0.30", currency: "EUR" },
    terminalName: "terminal-1",
    bankName: "Test Bank",
    method: "purchase",
    recurrentId: "rec-1",
    mid: "mid-1",
    tid: "tid-1",
    recipientIban: "UA213223130000026007233566001",
    subscriptionId: "sub-1",
    fiscalization: {
      fiscalId: "fiscal-1",
      fiscalUrl: "https://fiscal.example/1",
      status: FiscalizationStatus.SUCCESS,
      statusCode: 1001,
      statusDescription: "ok",
    },
  },
  externalId: "order-1",
  unifiedExternalId: "unified-1",
  batchExternalId: "batch-1",
  id: "id-1",
  projectId: "project-1",
  isSuccess: false,
  receiptUrl: "https://receipts.example/1",
  paymentMethod: {
    type: PaymentMethodType.CC_TOKEN,
    ccToken: { ...card, savedCard: true },
    applePay: card,
    googlePay: card,
  },
  customer: {
    browserUserAgent: "Firefox",
    email: "not an e-mail address",
    externalId: "customer-1",
    firstName: "Olena",
    ipAddress: "2001:db8::1",
    lastName: "Koval",
    patronym: "Ivanivna",
    phone: "+380501234567",
  },
  operation: PaymentOperation.PAYMENT,
});

const cardJson = {
  bankShortName: "Test Bank",
  expiresAt: "2030-12-31T23:59:59Z",
  mask: "411111******1111",
  paymentSystem: "visa",
  token: "tok-1",
  binCountry: "UA",
};

const everyFieldJson = {
  action: { type: "redirect", value: "https://3ds.example/1" },
  actionRequired: true,
  details: {
    amount: "10.10",
    billingOrderId: "billing-1",
    createdAt: "2026-11-21T10:00:00Z",
    currency: "EUR",
    description: "Two books",
    gatewayOrderId: "gateway-1",
    payload: "{}",
    paymentId: "pay-1",
    processedAt: "2026-11-21T10:00:00.250Z",
    rrn: "rrn-1",
    status: "PENDING",
    statusCode: "pending",
    statusDescription: "In progress",
    transactionId: "tx-1",
    operationId: "op-1",
    authCode: "auth-1",
    fee: { amount: "0.30", currency: "EUR" },
    terminalName: "terminal-1",
    bankName: "Test Bank",
    method: "purchase",
    recurrentId: "rec-1",
    mid: "mid-1",
    tid: "tid-1",
    recipientIban: "UA213223130000026007233566001",
    subscriptionId: "sub-1",
    fiscalization: {
      fiscalId: "fiscal-1",
      fiscalUrl: "https://fiscal.example/1",
      status: "SUCCESS",
      statusCode: 1001,
      statusDescription: "ok",
    },
  },
  externalId: "order-1",
  unifiedExternalId: "unified-1",
  batchExternalId: "batch-1",
  id: "id-1",
  projectId: "project-1",
  isSuccess: false,
  receiptUrl: "https://receipts.example/1",
  paymentMethod: {
    type: "CC_TOKEN",
    ccToken: { ...cardJson, savedCard: true },
    applePay: cardJson,
    googlePay: cardJson,
  },
  customer: {
    browserUserAgent: "Firefox",
    email: "not an e-mail address",
    externalId: "customer-1",
    firstName: "Olena",
    ipAddress: "2001:db8::1",
    lastName: "Koval",
    patronym: "Ivanivna",
    phone: "+380501234567",
  },
  operation: "PAYMENT",
};

function known(message: Payment): GetPaymentResponse {
  return {
    $typeName: "payments.v1.GetPaymentResponse",
    outcomeUnknown: false,
    needsOperator: false,
    state: PaymentState.PAID,
    operations: [],
    olderFailures: 0,
    payment: message,
    cursor: "c1",
  };
}

test("a payment shows every field that it has", async (t) => {
  const gateway = await serve(t, { getPayment: async () => known(payment) });
  const answer = await gateway.run(everyField);
  assert.deepEqual(answer, { data: { payment: everyFieldJson } });
});

test("absent fields, unspecified and unknown enum values are null", async (t) => {
  const bare = create(PaymentSchema, {
    details: { status: 0 },
    operation: 99 as PaymentOperation,
    paymentMethod: {},
  });
  const gateway = await serve(t, { getPayment: async () => known(bare) });
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
    getPayment: async () =>
      known(create(PaymentSchema, { details: { status, statusCode: "insufficient_funds" } })),
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

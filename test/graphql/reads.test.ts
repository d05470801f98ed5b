import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, EventSchema, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import {
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { GetPayoutResponseSchema } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { answeredPayment } from "../core/answers.ts";
import { type Answer, serve } from "./serve.ts";

const notFound = async () => {
  throw new GatewayError("NOT_FOUND", "no such thing");
};

test("an integer beyond 2^53 is returned as a string", async (t) => {
  const gateway = await serve(t, {
    getPayout: async () => create(GetPayoutResponseSchema, { payout: { fcId: 9007199254740993n } }),
  });
  assert.deepEqual(await gateway.run(`{ payout(externalId: "x") { fcId } }`), {
    data: { payout: { fcId: "9007199254740993" } },
  });
});

test("an unknown payment or payout is null", async (t) => {
  const gateway = await serve(t, { getPayment: notFound, getPayout: notFound });
  assert.deepEqual(
    await gateway.run(`{ payment(externalId: "x") { id } payout(externalId: "x") { status } }`),
    { data: { payment: null, payout: null } },
  );
});

test("the confirmation of a wallet item is read for the same customer", async (t) => {
  const gateway = await serve(t, {
    findWalletItems: async () => [
      create(WalletItemSchema, {
        card: {
          expiresAt: { seconds: 1924991999n, nanos: 0 },
          mask: "4111**1111",
          token: "tok",
          fullNumber: "4111111111111111",
          bankShortName: "Bank",
          paymentSystem: "visa",
        },
        optionId: "o-1",
        isDefault: true,
        name: "mine",
        type: "card",
      }),
    ],
    getConfirmationStatus: async () =>
      create(WalletItemSchema, { optionId: "o-1", isConfirmed: true, status: "confirmed" }),
  });
  const answer = await gateway.run(`{ walletItems(customer: {externalId: "c-1"}) {
    card { expiresAt mask token bankShortName paymentSystem } optionId isDefault name isConfirmed
    status type confirmation { optionId isConfirmed status }
  } }`);
  assert.deepEqual(answer, {
    data: {
      walletItems: [
        {
          card: {
            expiresAt: "2030-12-31T23:59:59Z",
            mask: "4111**1111",
            token: "tok",
            bankShortName: "Bank",
            paymentSystem: "visa",
          },
          optionId: "o-1",
          isDefault: true,
          name: "mine",
          isConfirmed: null,
          status: null,
          type: "card",
          confirmation: { optionId: "o-1", isConfirmed: true, status: "confirmed" },
        },
      ],
    },
  });
  const [, confirmation] = gateway.seen();
  assert.deepEqual(confirmation?.args[0], {
    $typeName: "payments.v1.GetConfirmationStatusRequest",
    customer: {
      $typeName: "payments.v1.CustomerIdentity",
      externalId: "c-1",
    },
    optionId: "o-1",
  });
});

test("a wallet call without a customer leaves the customer to the caller's token", async (t) => {
  const gateway = await serve(t, {
    getConfirmationStatus: async () => create(WalletItemSchema, { status: "new" }),
    findWalletItems: async () => [],
  });
  assert.deepEqual(
    await gateway.run(
      `{ walletItems(optionId: "true") { name } walletConfirmation(optionId: "o") { status } }`,
    ),
    { data: { walletItems: [], walletConfirmation: { status: "new" } } },
  );
  assert.deepEqual(
    gateway.seen().map(({ args }) => args[0]),
    [
      { $typeName: "payments.v1.FindWalletItemsRequest", optionId: "true" },
      { $typeName: "payments.v1.GetConfirmationStatusRequest", optionId: "o" },
    ],
  );
});

test("the full number of a card is not a field of the schema", async (t) => {
  const gateway = await serve(t);
  const { errors } = await gateway.run(`{ walletItems { card { fullNumber } } }`);
  assert.match(errors[0].message, /Cannot query field "fullNumber"/);
});

const operationInit = {
  id: "op-1",
  externalId: "order-1",
  unifiedExternalId: "u-1",
  details: {
    method: "purchase",
    operationId: "op-1",
    transactionId: "tx-1",
    billingOrderId: "b-1",
    gatewayOrderId: "g-1",
    rrn: "rrn",
    amount: "10.10",
    currency: "EUR",
  },
  statusCode: "transaction_successful",
  statusDescription: "ok",
  payload: "p",
  authCode: "a",
  bankName: "Bank",
  action: { type: "t", value: "v" },
  actionRequired: false,
  receiptUrl: "https://receipts.example/1",
  paymentMethodType: "ap",
  oneStage: true,
};
const operationFields = `id externalId unifiedExternalId
  details { method operationId transactionId billingOrderId gatewayOrderId rrn amount currency }
  status statusCode statusDescription createdAt processedAt payload authCode bankName
  action { type value } actionRequired receiptUrl paymentMethodType oneStage`;
const operation = create(OperationSchema, {
  ...operationInit,
  status: PaymentStatus.SUCCESS,
  createdAt: { seconds: 1795255200n, nanos: 0 },
  processedAt: { seconds: 1795255201n, nanos: 0 },
});
const operationJson = {
  ...operationInit,
  status: "SUCCESS",
  createdAt: "2026-11-21T10:00:00Z",
  processedAt: "2026-11-21T10:00:01Z",
};

test("operation shows every field", async (t) => {
  const gateway = await serve(t, { getOperation: async () => operation });
  assert.deepEqual(
    await gateway.run(
      `{ operation(externalId: "order-1", operationId: "op-1") { ${operationFields} } }`,
    ),
    { data: { operation: operationJson } },
  );
});

test("a payment links to its operation and to its events", async (t) => {
  const event = create(EventSchema, {
    cursor: "c-1",
    kind: EventKind.PAYMENT,
    externalId: "order-1",
    paymentId: "pay-1",
    source: EventSource.CALLBACK,
    receivedAt: { seconds: 1795255200n, nanos: 0 },
    final: true,
    resource: { case: "payment", value: { details: { status: PaymentStatus.SUCCESS } } },
  });
  const gateway = await serve(t, {
    createPayment: async () => answeredPayment(),
    getPayment: async () => ({
      $typeName: "payments.v1.GetPaymentResponse",
      outcomeUnknown: false,
      needsOperator: false,
      state: PaymentState.PAID,
      operations: [],
      olderFailures: 0,
      payment: create(PaymentSchema, { externalId: "order-1", details: { operationId: "op-1" } }),
      cursor: "c-1",
    }),
    getOperation: async () => operation,
    paymentEvents: async () => [event],
  });
  const answer = await gateway.run(`{ payment(externalId: "order-1") {
    operationInfo { ${operationFields} }
    events(first: 3) {
      __typename cursor kind externalId paymentId source receivedAt final
      payment { details { status } }
    }
  } }`);
  assert.deepEqual(answer, {
    data: {
      payment: {
        operationInfo: operationJson,
        events: [
          {
            __typename: "PaymentEvent",
            cursor: "c-1",
            kind: "PAYMENT",
            externalId: "order-1",
            paymentId: "pay-1",
            source: "CALLBACK",
            receivedAt: "2026-11-21T10:00:00Z",
            final: true,
            payment: { details: { status: "SUCCESS" } },
          },
        ],
      },
    },
  });
  const events = gateway.seen().find(({ method }) => method === "paymentEvents");
  assert.deepEqual(events?.args.slice(0, 2), ["order-1", 3]);
});

test("links of a payment without an operation, or to a missing one, are null or empty", async (t) => {
  const gateway = await serve(t, {
    getPayment: async ({ externalId }) => ({
      $typeName: "payments.v1.GetPaymentResponse",
      outcomeUnknown: false,
      needsOperator: false,
      state: PaymentState.PAID,
      operations: [],
      olderFailures: 0,
      payment:
        externalId === "bare"
          ? create(PaymentSchema)
          : create(PaymentSchema, { externalId, details: { operationId: "op" } }),
      cursor: "",
    }),
    getOperation: notFound,
    paymentEvents: async () => [],
  });
  assert.deepEqual(
    await gateway.run(`{
      bare: payment(externalId: "bare") { externalId operationInfo { id } events { cursor } }
      card: payment(externalId: "card") { operationInfo { id } }
    }`),
    {
      data: {
        bare: { externalId: "bare", operationInfo: null, events: [] },
        card: { operationInfo: null },
      },
    },
  );
});

test("a link that the caller may not follow is null with an error, and the rest is returned", async (t) => {
  const gateway = await serve(t, {
    getPayment: async () => ({
      $typeName: "payments.v1.GetPaymentResponse",
      outcomeUnknown: false,
      needsOperator: false,
      state: PaymentState.PAID,
      operations: [],
      olderFailures: 0,
      payment: create(PaymentSchema, { externalId: "e", details: { operationId: "op" } }),
      cursor: "",
    }),
    getOperation: async () => {
      throw new GatewayError("PERMISSION_DENIED", "needs the scope operations:read");
    },
  });
  const answer = await gateway.run(
    `{ payment(externalId: "e") { externalId operationInfo { id } } }`,
  );
  assert.deepEqual(answer.data, { payment: { externalId: "e", operationInfo: null } });
  assert.deepEqual(
    answer.errors.map(({ path, extensions }: Answer) => [path, extensions.code]),
    [[["payment", "operationInfo"], "FORBIDDEN"]],
  );
});

test("rateLimit returns the request budget", async (t) => {
  const gateway = await serve(t);
  assert.deepEqual(await gateway.run("{ rateLimit { limit remaining resetSeconds } }"), {
    data: { rateLimit: { limit: 10, remaining: 7, resetSeconds: 1 } },
  });
});

test("Payment.events accepts 1 to 100 as `first`", async (t) => {
  const gateway = await serve(t, {
    getPayment: async () => ({
      $typeName: "payments.v1.GetPaymentResponse",
      outcomeUnknown: false,
      needsOperator: false,
      state: PaymentState.PAID,
      operations: [],
      olderFailures: 0,
      payment: create(PaymentSchema, { externalId: "e" }),
      cursor: "",
    }),
    paymentEvents: async () => [],
  });
  for (const [first, code] of [
    [0, "BAD_USER_INPUT"],
    [1, undefined],
    [100, undefined],
    [101, "BAD_USER_INPUT"],
  ]) {
    const { errors } = await gateway.run(
      `{ payment(externalId: "e") { events(first: ${first}) { cursor } } }`,
    );
    assert.equal(errors?.[0].extensions.code, code);
  }
});

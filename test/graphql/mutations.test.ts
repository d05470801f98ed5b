import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema, PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { answeredPayment } from "../core/answers.ts";
import { serve } from "./serve.ts";

test("each mutation answers with its result; a message that is missing is empty", async (t) => {
  const action = { type: "3ds", value: "https://3ds.example/1" };
  const gateway = await serve(t, {
    createPayment: async () => answeredPayment({ externalId: "e", action }),
    resendCallback: async () => ({}),
    deleteWalletItem: async () => ({ deleted: true, optionId: "o", type: "card" }),
    updateSubscription: async () => ({}),
    deactivateSubscription: async () => ({ message: "off" }),
    createWatchToken: async () => ({ token: "jwt", expiresAt: { seconds: 1795255200n } }),
  });
  const answer = await gateway.run(`mutation {
    createPayment(input: {amount: 10.10, currency: "EUR", mode: HOSTED, externalId: "e",
      description: null, paymentMethod: {method: {wallet: {optionId: "o"}}}}) {
      ... on Payment { externalId action { type value } }
    }
    resendCallback(input: {externalId: "e", operation: REFUND}) {
      __typename ... on CallbackResent { externalId }
    }
    deleteWalletItem(input: {optionId: "o", type: "card"}) {
      ... on DeletedWalletItem { deleted optionId type }
    }
    updateSubscription(input: {subscriptionId: "s"}) {
      ... on SubscriptionMessage { message } ... on Error { message }
    }
    deactivateSubscription(input: {subscriptionId: "s"}) { ... on SubscriptionMessage { message } }
    createWatchToken(input: {externalId: "e", kind: PAYOUT, ttlSeconds: 60}) {
      ... on WatchToken { token expiresAt }
    }
  }`);
  assert.deepEqual(answer, {
    data: {
      createPayment: { externalId: "e", action },
      resendCallback: { __typename: "CallbackResent", externalId: "e" },
      deleteWalletItem: { deleted: true, optionId: "o", type: "card" },
      updateSubscription: { message: "" },
      deactivateSubscription: { message: "off" },
      createWatchToken: { token: "jwt", expiresAt: "2026-11-21T10:00:00Z" },
    },
  });
  const asked = gateway.seen().map(({ request }) => request);
  assert.deepEqual(toJson(CreatePaymentRequestSchema, asked[0] as never), {
    ...{ amount: "10.10", currency: "EUR", mode: "PAYMENT_MODE_HOSTED", externalId: "e" },
    paymentMethod: { wallet: { optionId: "o" } },
  });
  assert.equal((asked.at(-1) as { kind: EventKind }).kind, EventKind.PAYOUT);
});

test("a payment without external_id takes the one of the call, and its state and links are resolved", async (t) => {
  const asked: string[] = [];
  const gateway = await serve(t, {
    confirmPayment: async () => ({
      payment: create(PaymentSchema, { details: { operationId: "op" } }),
      ...{ state: PaymentState.PAID, cursor: "c-1" },
    }),
    getOperation: async ({ externalId }) => {
      asked.push(externalId);
      return { id: "op" };
    },
  });
  const { data, errors } = await gateway.run(`mutation { confirmPayment(input: {externalId: "e"}) {
    ... on Payment { externalId state cursor operationInfo { id } }
    ... on OutcomeUnknownError { externalId }
  } }`);
  assert.equal(errors, undefined);
  const told = { externalId: "e", state: "PAID", cursor: "c-1", operationInfo: { id: "op" } };
  assert.deepEqual(data, { confirmPayment: told });
  assert.deepEqual(asked, ["e"]);
});

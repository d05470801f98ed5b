import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toJson } from "@bufbuild/protobuf";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { CreateWatchTokenResponseSchema } from "../../src/gen/payments/v1/event_service_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { PaymentSchema, PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import {
  ConfirmPaymentRequestSchema,
  CreatePaymentRequestSchema,
  CreateRecurrentPaymentRequestSchema,
  ResendCallbackRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import {
  DeactivateSubscriptionResponseSchema,
  UpdateSubscriptionRequestSchema,
  UpdateSubscriptionResponseSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { DeletedWalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { answeredPayment } from "../core/answers.ts";
import { requestOf } from "./request-of.ts";
import { serve } from "./serve.ts";

test("createPayment carries every kind of field to the core", async (t) => {
  const gateway = await serve(t, {
    createPayment: async () =>
      answeredPayment({
        externalId: "order-1",
        action: { type: "3ds", value: "https://3ds.example/1" },
      }),
  });
  const answer = await gateway.run(
    `mutation($input: CreatePaymentInput!) { createPayment(input: $input) {
      __typename ... on Payment { externalId action { type value } }
    } }`,
    {
      input: {
        amount: "10.10",
        currency: "EUR",
        mode: "DIRECT",
        externalId: "order-1",
        resultUrl: "https://shop.example/done",
        confirm: false,
        description: null,
        customer: { email: "olena@example.com", ipAddress: "203.0.113.9", externalId: "c-1" },
        paymentMethod: {
          type: "CARD",
          saveToWallet: true,
          method: {
            cc: {
              number: "4111111111111111",
              cvv: "123",
              expMonth: 12,
              expYear: 2030,
              use3dsFlow: true,
            },
          },
        },
        products: [
          { name: "Book", quantity: "2", netAmount: "5.05", taxGroup: 4 },
          { name: "Pen", vatAmount: 1 },
        ],
        recipient: {
          rid: "rid-1",
          paymentMethod: { type: "IBAN", method: { iban: { iban: "UA21322313" } } },
        },
      },
    },
  );
  assert.deepEqual(answer, {
    data: {
      createPayment: {
        __typename: "Payment",
        externalId: "order-1",
        action: { type: "3ds", value: "https://3ds.example/1" },
      },
    },
  });
  assert.deepEqual(requestOf(gateway, CreatePaymentRequestSchema), {
    amount: "10.10",
    currency: "EUR",
    mode: "PAYMENT_MODE_DIRECT",
    external_id: "order-1",
    result_url: "https://shop.example/done",
    confirm: false,
    customer: { email: "olena@example.com", ip_address: "203.0.113.9", external_id: "c-1" },
    payment_method: {
      type: "PAYMENT_METHOD_TYPE_CARD",
      save_to_wallet: true,
      cc: {
        number: "4111111111111111",
        cvv: "123",
        exp_month: 12,
        exp_year: 2030,
        use_3ds_flow: true,
      },
    },
    products: [
      { name: "Book", quantity: "2", net_amount: "5.05", tax_group: 4 },
      { name: "Pen", vat_amount: "1" },
    ],
    recipient: {
      rid: "rid-1",
      payment_method: {
        type: "RECIPIENT_PAYMENT_METHOD_TYPE_IBAN",
        iban: { iban: "UA21322313" },
      },
    },
  });
});

const paymentMethods: [method: string, proto: unknown][] = [
  [`ccToken: {token: "t"}`, { cc_token: { token: "t" } }],
  [`wallet: {optionId: "o"}`, { wallet: { option_id: "o" } }],
  [`applePay: {token: "t"}`, { apple_pay: { token: "t" } }],
  [
    `googlePay: {token: "t", use3dsFlow: false}`,
    { google_pay: { token: "t", use_3ds_flow: false } },
  ],
  [
    `decryptedApplePay: {applicationPrimaryAccountNumber: "1", applicationExpirationDate: "2",
      onlinePaymentCryptogram: "3", currencyCode: "4", deviceManufacturerIdentifier: "5",
      transactionId: "6", ephemeralPublicKey: "7", publicKeyHash: "8", eciIndicator: null}`,
    {
      decrypted_apple_pay: {
        application_primary_account_number: "1",
        application_expiration_date: "2",
        online_payment_cryptogram: "3",
        currency_code: "4",
        device_manufacturer_identifier: "5",
        transaction_id: "6",
        ephemeral_public_key: "7",
        public_key_hash: "8",
      },
    },
  ],
  [
    `decryptedGooglePay: {pan: "1", expMonth: 2, expYear: 3, cryptogram: "4", eciIndicator: "5",
      authMethod: "6", gatewayMerchantId: "7", messageId: "8", messageExpiration: "9",
      paymentMethod: "10", protocolVersion: "11", use3dsFlow: true}`,
    {
      decrypted_google_pay: {
        pan: "1",
        exp_month: 2,
        exp_year: 3,
        cryptogram: "4",
        eci_indicator: "5",
        auth_method: "6",
        gateway_merchant_id: "7",
        message_id: "8",
        message_expiration: "9",
        payment_method: "10",
        protocol_version: "11",
        use_3ds_flow: true,
      },
    },
  ],
];

for (const [method, proto] of paymentMethods) {
  test(`createPayment takes the payment method ${method.slice(0, method.indexOf(":"))}`, async (t) => {
    const gateway = await serve(t, { createPayment: async () => answeredPayment() });
    const answer = await gateway.run(`mutation { createPayment(input: {
      amount: 10.10, currency: "EUR", mode: HOSTED, externalId: "e",
      paymentMethod: {method: {${method}}}
    }) { __typename } }`);
    assert.deepEqual(answer, { data: { createPayment: { __typename: "Payment" } } });
    const request = requestOf(gateway, CreatePaymentRequestSchema) as Record<string, unknown>;
    assert.deepEqual(request.payment_method, proto);
    assert.equal(request.amount, "10.10");
  });
}

test("createRecurrentPayment, confirmPayment and resendCallback reach the core", async (t) => {
  const done = async () => answeredPayment({ id: "p-1" });
  const recurrent = await serve(t, { createRecurrentPayment: done });
  assert.deepEqual(
    await recurrent.run(`mutation { createRecurrentPayment(input: {
      recurrentId: "r", externalId: "e", amount: "5", unifiedExternalId: "u", payload: "p",
      delegateApiKey: "k", subscriptionId: "s", confirm: true
    }) { ... on Payment { id } } }`),
    { data: { createRecurrentPayment: { id: "p-1" } } },
  );
  assert.deepEqual(requestOf(recurrent, CreateRecurrentPaymentRequestSchema), {
    recurrent_id: "r",
    external_id: "e",
    unified_external_id: "u",
    amount: "5",
    payload: "p",
    delegate_api_key: "k",
    subscription_id: "s",
    confirm: true,
  });

  const confirm = await serve(t, { confirmPayment: done });
  assert.deepEqual(
    await confirm.run(`mutation { confirmPayment(input: {
      externalId: "e", amount: "0.1", currency: "EUR", payload: "p"
    }) { ... on Payment { id } } }`),
    { data: { confirmPayment: { id: "p-1" } } },
  );
  assert.deepEqual(requestOf(confirm, ConfirmPaymentRequestSchema), {
    external_id: "e",
    amount: "0.1",
    currency: "EUR",
    payload: "p",
  });

  const resend = await serve(t, { resendCallback: async () => undefined });
  assert.deepEqual(
    await resend.run(`mutation { resendCallback(input: {externalId: "e", operation: REFUND}) {
      __typename ... on CallbackResent { externalId }
    } }`),
    { data: { resendCallback: { __typename: "CallbackResent", externalId: "e" } } },
  );
  assert.deepEqual(requestOf(resend, ResendCallbackRequestSchema), {
    external_id: "e",
    operation: "PAYMENT_OPERATION_REFUND",
  });
});

test("a mutation may select the message of a subscription and of an error; a missing one is empty", async (t) => {
  const gateway = await serve(t, {
    updateSubscription: async () => create(UpdateSubscriptionResponseSchema),
  });
  const answer = await gateway.run(`mutation {
    updateSubscription(input: {subscriptionId: "s", customer: {externalId: "c"}}) {
      ... on SubscriptionMessage { message }
      ... on Error { message }
    }
  }`);
  assert.deepEqual(answer, { data: { updateSubscription: { message: "" } } });
});

test("deleteWalletItem, updateSubscription, deactivateSubscription and createWatchToken answer", async (t) => {
  const gateway = await serve(t, {
    deleteWalletItem: async () =>
      create(DeletedWalletItemSchema, { deleted: true, optionId: "o", type: "card" }),
    updateSubscription: async () => create(UpdateSubscriptionResponseSchema, { message: "on" }),
    deactivateSubscription: async () =>
      create(DeactivateSubscriptionResponseSchema, { message: "off" }),
    createWatchToken: async () =>
      create(CreateWatchTokenResponseSchema, {
        token: "jwt",
        expiresAt: { seconds: 1795255200n, nanos: 0 },
      }),
  });
  const answer = await gateway.run(`mutation {
    deleteWalletItem(input: {customer: {authToken: "jwt"}, optionId: "o", type: "card"}) {
      ... on DeletedWalletItem { deleted optionId type }
    }
    updateSubscription(input: {subscriptionId: "s", customer: {externalId: "c"}, autoRenew: false}) {
      ... on SubscriptionMessage { message }
    }
    deactivateSubscription(input: {subscriptionId: "s"}) { ... on SubscriptionMessage { message } }
    createWatchToken(input: {externalId: "e", kind: PAYOUT, ttlSeconds: 60}) {
      ... on WatchToken { token expiresAt }
    }
  }`);
  assert.deepEqual(answer, {
    data: {
      deleteWalletItem: { deleted: true, optionId: "o", type: "card" },
      updateSubscription: { message: "on" },
      deactivateSubscription: { message: "off" },
      createWatchToken: { token: "jwt", expiresAt: "2026-11-21T10:00:00Z" },
    },
  });
  const [deleted, updated, , token] = gateway.seen().map(({ args }) => args[0]);
  assert.equal((deleted as { customer: { authToken: unknown } }).customer.authToken, "jwt");
  assert.deepEqual(toJson(UpdateSubscriptionRequestSchema, updated as never), {
    subscriptionId: "s",
    customer: { externalId: "c" },
    autoRenew: false,
  });
  assert.equal((token as { kind: EventKind }).kind, EventKind.PAYOUT);
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
      return create(OperationSchema, { id: "op" });
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

import assert from "node:assert/strict";
import { test } from "node:test";
import { create, type Message } from "@bufbuild/protobuf";
import { CustomerIdentitySchema } from "../../src/gen/payments/v1/customer_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import { PaymentMethodType, PaymentOperation } from "../../src/gen/payments/v1/payment_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import type { SendOptions, Upstream } from "../../src/upstream/upstream.ts";
import { valuesOf } from "../values-of.ts";
import { getPayout, good, patient, serverRig } from "./rig.ts";

const always = [
  "authorization: Basic bWVyY2hhbnQ6Z2VoZWltLdC60LvRjtGH",
  "accept: application/json",
  "accept-encoding: identity",
  "user-agent: payments-gateway",
];
const itemId = "7f9c24e8-3b12-4f5a-9c1d-0a1b2c3d4e5f";

const byToken = create(CustomerIdentitySchema, { authToken: "eyJ.customer.jwt" });
const byRid = create(CustomerIdentitySchema, { rid: "0d4b5c3e-1111-4222-8333-944455556666" });
const byExternalId = create(CustomerIdentitySchema, { externalId: "user 7&x=1/ї" });

const schemas = new Map(
  services.flatMap(({ methods }) => methods).map(({ localName, input }) => [localName, input]),
);

interface Case {
  readonly name: string;
  readonly method: Exclude<keyof Upstream, "close">;
  readonly request: Record<string, unknown>;
  readonly line: string;
  /** Besides those that every request has. */
  readonly headers?: readonly string[];
  readonly body?: string;
  readonly movesMoney?: true;
}

const cases: Case[] = [
  {
    name: "createPayment posts to payments/v1/new",
    method: "createPayment",
    request: {
      amount: "10.10",
      currency: "UAH",
      mode: PaymentMode.DIRECT,
      externalId: "order-1",
      callbackUrl: "https://gw.example/callbacks/default/payments",
      confirm: false,
      customer: { email: "a@b.example" },
      paymentMethod: {
        type: PaymentMethodType.CC_NUMBER,
        method: {
          case: "cc",
          value: { cvv: "123", expMonth: 5, expYear: 2030, number: "4111111111111111" },
        },
      },
    },
    line: "POST /api/payments/v1/new HTTP/1.1",
    body:
      '{"amount":10.10,"currency":"UAH","mode":"direct","external_id":"order-1",' +
      '"callback_url":"https://gw.example/callbacks/default/payments","confirm":false,' +
      '"customer":{"email":"a@b.example"},"payment_method":{"type":"cc_number",' +
      '"cc":{"cvv":"123","exp_month":5,"exp_year":2030,"number":"4111111111111111"}}}',
    movesMoney: true,
  },
  {
    name: "createRecurrentPayment posts to payments/v1/recurrent",
    method: "createRecurrentPayment",
    request: { recurrentId: "rec-1", externalId: "order-2", amount: "0.1" },
    line: "POST /api/payments/v1/recurrent HTTP/1.1",
    body: '{"recurrent_id":"rec-1","external_id":"order-2","amount":0.1}',
    movesMoney: true,
  },
  {
    name: "confirmPayment posts to payments/v1/confirm",
    method: "confirmPayment",
    request: { externalId: "order-1", amount: "99999999999.99" },
    line: "POST /api/payments/v1/confirm HTTP/1.1",
    body: '{"external_id":"order-1","amount":99999999999.99}',
    movesMoney: true,
  },
  {
    name: "resendCallback posts to payments/v1/callback/resend",
    method: "resendCallback",
    request: { externalId: "order-1", operation: PaymentOperation.REFUND },
    line: "POST /api/payments/v1/callback/resend HTTP/1.1",
    body: '{"external_id":"order-1","operation":"refund"}',
  },
  {
    name: "requestPayout posts to payouts/v1/request-payout",
    method: "requestPayout",
    request: {
      order: {
        currency: "UAH",
        description: "Prize",
        externalId: "payout-1",
        originalAmount: "250.00",
      },
      payer: { entityId: "entity-1" },
      recipient: {
        card: { firstName: "Іван", lastName: "Koval", cardData: { token: "card-token" } },
      },
      payoutType: "card",
    },
    line: "POST /api/payouts/v1/request-payout HTTP/1.1",
    body:
      '{"order":{"currency":"UAH","description":"Prize","external_id":"payout-1",' +
      '"original_amount":"250.00"},"payer":{"entity_id":"entity-1"},"recipient":{"card":' +
      '{"first_name":"Іван","last_name":"Koval","card_data":{"token":"card-token"}}},' +
      '"payout_type":"card"}',
    movesMoney: true,
  },
  {
    name: "getPayout reads payouts/v1/info by an escaped external_id",
    method: "getPayout",
    request: { externalId: "p #1&?=+%" },
    line: "GET /api/payouts/v1/info?external_id=p%20%231%26%3F%3D%2B%25 HTTP/1.1",
  },
  {
    name: "findWalletItems tells a customer by token in X-CUSTOMER-AUTH",
    method: "findWalletItems",
    request: { customer: byToken, optionId: "true" },
    line: "GET /api/customers/v1/wallet/find?option_id=true HTTP/1.1",
    headers: ["x-customer-auth: eyJ.customer.jwt"],
  },
  {
    name: "findWalletItems tells a customer by external_id in the query",
    method: "findWalletItems",
    request: { customer: byExternalId },
    line: "GET /api/customers/v1/wallet/find?external_id=user%207%26x%3D1%2F%D1%97 HTTP/1.1",
  },
  {
    name: "getConfirmationStatus reads wallet/confirmation/status",
    method: "getConfirmationStatus",
    request: { customer: byExternalId, optionId: "opt/1" },
    line:
      "GET /api/customers/v1/wallet/confirmation/status" +
      "?external_id=user%207%26x%3D1%2F%D1%97&option_id=opt%2F1 HTTP/1.1",
  },
  {
    name: "getConfirmationStatus asks without an option_id, and with both of a customer's names",
    method: "getConfirmationStatus",
    request: { customer: { ...byToken, externalId: "u" } },
    line: "GET /api/customers/v1/wallet/confirmation/status?external_id=u HTTP/1.1",
    headers: ["x-customer-auth: eyJ.customer.jwt"],
  },
  {
    name: "deleteWalletItem sends a body with its DELETE",
    method: "deleteWalletItem",
    request: { customer: byExternalId, optionId: itemId, type: "card" },
    line: "DELETE /api/customers/v1/wallet?external_id=user%207%26x%3D1%2F%D1%97 HTTP/1.1",
    body: `{"option_id":"${itemId}","type":"card"}`,
  },
  {
    name: "updateSubscription patches the subscription in the path",
    method: "updateSubscription",
    request: { subscriptionId: itemId, customer: byToken, autoRenew: false },
    line: `PATCH /api/subscriptions/v1/subscriptions/${itemId} HTTP/1.1`,
    headers: ["x-customer-auth: eyJ.customer.jwt"],
    body: '{"auto_renew":false}',
  },
  {
    name: "updateSubscription sends an empty object without auto_renew",
    method: "updateSubscription",
    request: { subscriptionId: "a/../b" },
    line: "PATCH /api/subscriptions/v1/subscriptions/a%2F..%2Fb HTTP/1.1",
    body: "{}",
  },
  {
    name: "deactivateSubscription deletes, with the RID of a trusted service",
    method: "deactivateSubscription",
    request: { subscriptionId: itemId, customer: byRid },
    line: `DELETE /api/subscriptions/v1/subscriptions/${itemId} HTTP/1.1`,
    headers: ["x-customer-rid: 0d4b5c3e-1111-4222-8333-944455556666"],
  },
  {
    name: "deactivateSubscription tells a customer by external_id in the query",
    method: "deactivateSubscription",
    request: { subscriptionId: itemId, customer: byExternalId },
    line:
      `DELETE /api/subscriptions/v1/subscriptions/${itemId}` +
      "?external_id=user%207%26x%3D1%2F%D1%97 HTTP/1.1",
  },
  {
    name: "getOperation reads alternative-payments/v1/info/operation",
    method: "getOperation",
    request: { externalId: "order 1", operationId: "op/1" },
    line:
      "GET /api/alternative-payments/v1/info/operation" +
      "?external_id=order%201&operation_id=op%2F1 HTTP/1.1",
  },
];

for (const { name, method, request, line, headers = [], body = "", movesMoney } of cases) {
  test(name, async (t) => {
    const { upstream, server, taken } = await serverRig(t, good);
    const send = upstream[method] as (message: Message, options: SendOptions) => Promise<unknown>;
    await send(create(schemas.get(method)!, request), patient);

    const ofBody = ["content-type: application/json", `content-length: ${Buffer.byteLength(body)}`];
    const expected = [...always, ...headers, ...(body === "" ? [] : ofBody)];
    assert.deepEqual(
      server.requests.map((sent) => [sent.line, sent.headers.toSorted(), sent.body]),
      [[line, expected.sort(), body]],
    );
    assert.deepEqual(valuesOf(taken, "priority"), [movesMoney ? "money" : "read"]);
  });
}

test("a path in the base URL is prefixed to the spec's paths", async (t) => {
  const { upstream, server } = await serverRig(t, good, { at: (url) => `${url}/gate/way` });
  await getPayout(upstream, patient, "p");
  const line = "GET /gate/way/api/payouts/v1/info?external_id=p HTTP/1.1";
  assert.equal(server.requests[0]?.line, line);
});

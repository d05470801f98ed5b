import assert from "node:assert/strict";
import { test } from "node:test";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  equals,
  type Message,
} from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import type { Core } from "../../src/core/core.ts";
import { EventKind, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  CreateWatchTokenResponseSchema,
  EventService,
  ListEventsResponseSchema,
} from "../../src/gen/payments/v1/event_service_pb.ts";
import { OperationSchema } from "../../src/gen/payments/v1/operation_pb.ts";
import { OperationService } from "../../src/gen/payments/v1/operation_service_pb.ts";
import { PaymentMode } from "../../src/gen/payments/v1/payment_input_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentState,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  GetPaymentResponseSchema,
  ListPaymentsResponseSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutSchema, PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import {
  GetPayoutResponseSchema,
  ListPayoutsResponseSchema,
  PayoutService,
} from "../../src/gen/payments/v1/payout_service_pb.ts";
import {
  DeactivateSubscriptionResponseSchema,
  SubscriptionService,
  UpdateSubscriptionResponseSchema,
} from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { DeletedWalletItemSchema, WalletItemSchema } from "../../src/gen/payments/v1/wallet_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { services } from "../../src/rpc/services/routes.ts";
import { isSecret } from "../../src/secrets/secret-fields.ts";
import { answeredPayment, answeredPayout } from "../core/answers.ts";
import { type Started, start, wires } from "./start.ts";

const payment = create(PaymentSchema, { externalId: "order-1" });
const payout = create(PayoutSchema, { externalId: "payout-1" });
const item = create(WalletItemSchema, { optionId: "card-1", isConfirmed: true });
const operation = create(OperationSchema, { id: "op-1" });
const event = create(EventSchema, {
  cursor: "c1",
  kind: EventKind.PAYMENT,
  externalId: "order-1",
  resource: { case: "payment", value: payment },
});
const token = create(CreateWatchTokenResponseSchema, {
  token: "signed",
  expiresAt: timestampFromDate(new Date("2026-11-21T10:00:00Z")),
});
const eventPage = create(ListEventsResponseSchema, { events: [event], nextPageToken: "more" });
const paymentPage = create(ListPaymentsResponseSchema, {
  payments: [{ externalId: "order-1", state: PaymentState.PAID, cursor: "c1", payment }],
  nextPageToken: "more",
});
const payoutPage = create(ListPayoutsResponseSchema, {
  payouts: [{ externalId: "payout-1", state: PayoutState.UNKNOWN, outcomeUnknown: true }],
});
const known = create(GetPaymentResponseSchema, { payment, cursor: "c9" });

interface Case {
  readonly method: DescMethod;
  readonly request: Record<string, unknown>;
  /** What the core answers, or yields. */
  readonly answer: unknown;
  readonly response: Record<string, unknown>;
}

/** @param response default: the core's own answer */
function of(method: DescMethod, request: object, answer: object | undefined, response = answer) {
  return { method, request, answer, response } as Case;
}

const { method: payments } = PaymentService;
const { method: payouts } = PayoutService;
const { method: wallets } = WalletService;
const { method: subscriptions } = SubscriptionService;
const { method: events } = EventService;
const cases: readonly Case[] = [
  of(
    payments.createPayment,
    {
      ...{ amount: "10.10", currency: "UAH", mode: PaymentMode.DIRECT, externalId: "order-1" },
      confirm: false,
      paymentMethod: {
        method: { case: "cc", value: { number: "4111111111111111", expirationYear: "30" } },
      },
    },
    answeredPayment(payment),
    { payment },
  ),
  of(
    payments.createRecurrentPayment,
    { recurrentId: "r-1", externalId: "order-2", amount: "0.1" },
    answeredPayment(payment),
    { payment },
  ),
  of(
    payments.confirmPayment,
    { externalId: "order-1", amount: "99999999999.99" },
    answeredPayment(payment),
    { payment },
  ),
  of(
    payments.resendCallback,
    { externalId: "order-1", operation: PaymentOperation.REFUND },
    undefined,
    {},
  ),
  of(payments.getPayment, { externalId: "order-1" }, known),
  of(
    payments.listPayments,
    { states: [PaymentState.PAID], needsOperator: false, pageSize: 1, newestFirst: true },
    paymentPage,
  ),
  of(payments.watchPayment, { externalId: "order-1", afterCursor: "c0", untilFinal: true }, event, {
    event,
  }),
  of(
    payouts.requestPayout,
    {
      payoutType: "card",
      order: { currency: "UAH", externalId: "payout-1", originalAmount: "5" },
      payer: { entityId: "e-1" },
    },
    answeredPayout(payout),
    { payout },
  ),
  of(
    payouts.getPayout,
    { externalId: "payout-1" },
    create(GetPayoutResponseSchema, { payout, outcomeUnknown: true, needsOperator: true }),
  ),
  of(payouts.listPayouts, { states: [PayoutState.UNKNOWN], pageToken: "more" }, payoutPage),
  of(payouts.watchPayout, { externalId: "payout-1" }, event, { event }),
  of(wallets.findWalletItems, { customer: { externalId: "customer-1" } }, [item, item], {
    items: [item, item],
  }),
  of(wallets.getConfirmationStatus, { optionId: "card-1" }, item, { item }),
  of(
    wallets.deleteWalletItem,
    { optionId: "card-1", type: "card" },
    create(DeletedWalletItemSchema, { deleted: true, optionId: "card-1", type: "card" }),
  ),
  of(
    subscriptions.updateSubscription,
    { subscriptionId: "s-1", autoRenew: false },
    create(UpdateSubscriptionResponseSchema, { message: "updated" }),
  ),
  of(
    subscriptions.deactivateSubscription,
    { subscriptionId: "s-1" },
    create(DeactivateSubscriptionResponseSchema, { message: "deactivated" }),
  ),
  of(
    OperationService.method.getOperation,
    { externalId: "order-1", operationId: "op-1" },
    operation,
    { operation },
  ),
  of(events.streamEvents, { afterCursor: "earliest", kinds: [EventKind.PAYOUT] }, event, { event }),
  of(
    events.listEvents,
    { kind: EventKind.PAYMENT, externalId: "order-1", pageSize: 2, newestFirst: true },
    eventPage,
  ),
  of(
    events.createWatchToken,
    { externalId: "order-1", kind: EventKind.PAYMENT, ttlSeconds: 60 },
    token,
  ),
];

/** A core whose methods have the names of those of the services. */
const everyAnswer: Partial<Core> = Object.fromEntries(
  cases.map(({ method: { localName, methodKind }, answer }) => [
    localName,
    methodKind === "unary"
      ? async () => answer
      : async function* () {
          yield answer;
        },
  ]),
);

/** Checks that the core received the request of the case, and the client its response. */
function check(started: Started, { method, request, response }: Case, got: Message): void {
  assert.equal(started.calls.length, 1);
  const [arrived] = started.calls;
  assert.equal(arrived?.method, method.localName);
  const sent = create(method.input, request);
  assert.ok(equals(method.input, arrived?.request as Message, sent), "request is unchanged");
  assert.ok(equals(method.output, got, create(method.output, response)), "response is unchanged");
  started.calls.length = 0;
}

async function callBy(transport: Transport, { method, request }: Case): Promise<Message> {
  const message = create(method.input, request);
  if (method.methodKind === "unary") {
    const unary = method as DescMethodUnary;
    return (await transport.unary(unary, undefined, 5000, undefined, message)).message;
  }
  const input = (async function* () {
    yield message;
  })();
  const streaming = method as DescMethodServerStreaming;
  const answer = await transport.stream(streaming, undefined, 5000, undefined, input);
  const messages: Message[] = [];
  for await (const got of answer.message) messages.push(got);
  assert.equal(messages.length, 1);
  return messages[0] as Message;
}

test("the cases cover every method of every service", () => {
  const all = services.flatMap((service) => service.methods.map((method) => method.toString()));
  assert.deepEqual(cases.map(({ method }) => method.toString()).sort(), all.sort());
});

for (const { protocol, httpVersion, name } of wires) {
  test(`every method reaches its use case by ${name}`, async () => {
    await using started = await start(everyAnswer);
    const transport = started.transport(protocol, httpVersion);
    for (const one of cases) {
      check(started, one, await callBy(transport, one));
    }
  });
}

test("no method whose request has a secret answers a GET, whose URL proxies write to their logs", async () => {
  const hasSecret = ({ fields }: DescMessage): boolean =>
    fields.some((field) => isSecret(field) || (field.message && hasSecret(field.message)));
  const methods = services.flatMap((service) => service.methods).filter((m) => hasSecret(m.input));
  assert.ok(methods.includes(WalletService.method.findWalletItems));
  await using started = await start(everyAnswer);
  const query = `?connect=v1&encoding=json&message=${encodeURIComponent('{"customer":{"authToken":"jwt"}}')}`;
  for (const { parent, name } of methods) {
    const { status } = await fetch(`${started.url}/${parent.typeName}/${name}${query}`);
    assert.equal(status, 405, name);
  }
  assert.deepEqual(started.calls, []);
});

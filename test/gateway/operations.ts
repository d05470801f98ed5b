import type { DescMethod } from "@bufbuild/protobuf";
import { demoCustomer, demoOptions, demoSubscriptions } from "../../sandbox/ledger/demo-data.ts";
import type { Gateway } from "../../src/app/gateway.ts";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { OperationService } from "../../src/gen/payments/v1/operation_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { SubscriptionService } from "../../src/gen/payments/v1/subscription_service_pb.ts";
import { WalletService } from "../../src/gen/payments/v1/wallet_service_pb.ts";
import { callGraphql, callRpc, type Outcome, type Shown } from "./access.ts";
import { paymentRequest, payoutRequest } from "./callers.ts";

/** External ids of the objects that calls refer to. */
export interface Objects {
  readonly payment: string;
  readonly payout: string;
  readonly customer: string;
}

export const own: Objects = {
  payment: "order-own",
  payout: "payout-own",
  customer: demoCustomer.externalId,
};
export const foreign: Objects = {
  payment: "order-foreign",
  payout: "payout-foreign",
  customer: "customer-foreign",
};

/** One RPC method or GraphQL root field, as a caller uses it. */
export interface Operation {
  /** `Service.Method`, or a root field such as `Query.payment`. */
  readonly name: string;
  /** The scope that it needs, not read from the proto. Undefined: any service may call it. */
  readonly scope: string | undefined;
  /** The kind of object whose watch token may call it. */
  readonly watches?: "payment" | "payout";
  run(gateway: Gateway, headers: Shown, objects: Objects): Promise<Outcome>;
}

let count = 0;
const fresh = () => `order-fresh-${count++}`;
const option = demoOptions.unconfirmed;
const subscription = demoSubscriptions.active;
const identity = ({ customer }: Objects) => ({
  customer: { externalId: customer },
});
const card = { number: "4111111111111111", cvv: "123", expMonth: 12, expYear: 2035 };

export const rpcOperations: readonly Operation[] = [
  rpc(PaymentService.method.createPayment, "payments:write", () => paymentRequest(fresh())),
  rpc(PaymentService.method.createRecurrentPayment, "payments:write", () => ({
    recurrentId: "unknown",
    externalId: fresh(),
    amount: "1.00",
  })),
  rpc(PaymentService.method.confirmPayment, "payments:write", () => ({ externalId: fresh() })),
  rpc(PaymentService.method.resendCallback, "callbacks:resend", ({ payment }) => ({
    externalId: payment,
  })),
  rpc(PaymentService.method.getPayment, "payments:read", ({ payment }) => ({
    externalId: payment,
  })),
  rpc(
    PaymentService.method.watchPayment,
    "payments:read",
    ({ payment }) => ({ externalId: payment }),
    "payment",
  ),
  rpc(PayoutService.method.requestPayout, "payouts:write", () => payoutRequest(fresh())),
  rpc(PayoutService.method.getPayout, "payouts:read", ({ payout }) => ({ externalId: payout })),
  rpc(PaymentService.method.listPayments, "events:read", () => ({ newestFirst: true })),
  rpc(PayoutService.method.listPayouts, "events:read", () => ({ newestFirst: true })),
  rpc(
    PayoutService.method.watchPayout,
    "payouts:read",
    ({ payout }) => ({ externalId: payout }),
    "payout",
  ),
  rpc(WalletService.method.findWalletItems, "wallet:read", identity),
  rpc(WalletService.method.getConfirmationStatus, "wallet:read", (objects) => ({
    ...identity(objects),
    optionId: option,
  })),
  rpc(WalletService.method.deleteWalletItem, "wallet:write", (objects) => ({
    ...identity(objects),
    optionId: option,
    type: "card",
  })),
  rpc(SubscriptionService.method.updateSubscription, "subscriptions:write", (objects) => ({
    ...identity(objects),
    subscriptionId: subscription,
    autoRenew: true,
  })),
  rpc(SubscriptionService.method.deactivateSubscription, "subscriptions:write", (objects) => ({
    ...identity(objects),
    subscriptionId: subscription,
  })),
  rpc(OperationService.method.getOperation, "operations:read", ({ payment }) => ({
    externalId: payment,
    operationId: "operation",
  })),
  rpc(EventService.method.streamEvents, "events:read", () => ({ afterCursor: "earliest" })),
  rpc(EventService.method.listEvents, "payments:read", ({ payment }) => ({
    kind: EventKind.PAYMENT,
    externalId: payment,
  })),
  rpc(EventService.method.createWatchToken, "watch:create", ({ payment }) => ({
    externalId: payment,
    kind: EventKind.PAYMENT,
  })),
];

const whose = ({ customer }: Objects) => `customer: { externalId: "${customer}" }`;
const cardInput = `{ number: "${card.number}", cvv: "123", expMonth: 12, expYear: 2035 }`;

export const graphqlOperations: readonly Operation[] = [
  query(
    "payment",
    "payments:read",
    ({ payment }) => `payment(externalId: "${payment}") { isSuccess }`,
  ),
  query("payout", "payouts:read", ({ payout }) => `payout(externalId: "${payout}") { __typename }`),
  query("payments", "events:read", () => "payments(first: 1) { edges { cursor } }"),
  query("payouts", "events:read", () => "payouts(first: 1) { edges { cursor } }"),
  query(
    "operation",
    "operations:read",
    ({ payment }) => `operation(externalId: "${payment}", operationId: "operation") { __typename }`,
  ),
  query("walletItems", "wallet:read", (objects) => `walletItems(${whose(objects)}) { name }`),
  query(
    "walletConfirmation",
    "wallet:read",
    (objects) => `walletConfirmation(${whose(objects)}, optionId: "${option}") { name }`,
  ),
  query("rateLimit", undefined, () => "rateLimit { limit }"),
  mutation(
    "createPayment",
    "payments:write",
    () => `amount: "10.00", currency: "UAH", mode: DIRECT, externalId: "${fresh()}",
      customer: { email: "customer@shop.example" }, paymentMethod: { method: { cc: ${cardInput} } }`,
  ),
  mutation(
    "createRecurrentPayment",
    "payments:write",
    () => `recurrentId: "unknown", externalId: "${fresh()}", amount: "1.00"`,
  ),
  mutation("confirmPayment", "payments:write", () => `externalId: "${fresh()}"`),
  mutation("resendCallback", "callbacks:resend", ({ payment }) => `externalId: "${payment}"`),
  mutation(
    "requestPayout",
    "payouts:write",
    () => `order: { currency: "UAH", description: "Salary", externalId: "${fresh()}", originalAmount: "10.00" },
      payer: { entityId: "entity" }, payoutType: "card",
      recipient: { card: { firstName: "Ivan", lastName: "Franko", externalId: "recipient", cardData: { number: "${card.number}" } } }`,
  ),
  mutation(
    "deleteWalletItem",
    "wallet:write",
    (objects) => `${whose(objects)}, optionId: "${option}", type: "card"`,
  ),
  mutation(
    "updateSubscription",
    "subscriptions:write",
    (objects) => `${whose(objects)}, subscriptionId: "${subscription}", autoRenew: true`,
  ),
  mutation(
    "deactivateSubscription",
    "subscriptions:write",
    (objects) => `${whose(objects)}, subscriptionId: "${subscription}"`,
  ),
  mutation(
    "createWatchToken",
    "watch:create",
    ({ payment }) => `externalId: "${payment}", kind: PAYMENT`,
  ),
  subscribe(
    "paymentUpdated",
    "payments:read",
    ({ payment }) => `(externalId: "${payment}")`,
    "payment",
  ),
  subscribe("payoutUpdated", "payouts:read", ({ payout }) => `(externalId: "${payout}")`, "payout"),
  subscribe("events", "events:read", () => '(after: "earliest")'),
];

function rpc(
  method: DescMethod,
  scope: string,
  request: (objects: Objects) => object,
  watches?: "payment" | "payout",
): Operation {
  return {
    name: `${method.parent.name}.${method.name}`,
    scope,
    ...(watches ? { watches } : {}),
    run: (gateway, headers, objects) => callRpc(gateway, method, request(objects), headers),
  };
}

function query(
  name: string,
  scope: string | undefined,
  text: (objects: Objects) => string,
): Operation {
  return {
    name: `Query.${name}`,
    scope,
    run: (gateway, headers, objects) => callGraphql(gateway, `{ ${text(objects)} }`, headers),
  };
}

function mutation(name: string, scope: string, input: (objects: Objects) => string): Operation {
  return {
    name: `Mutation.${name}`,
    scope,
    run: (gateway, headers, objects) =>
      callGraphql(
        gateway,
        `mutation { ${name}(input: { ${input(objects)} }) { __typename ... on Error { message } } }`,
        headers,
      ),
  };
}

function subscribe(
  name: string,
  scope: string,
  args: (objects: Objects) => string,
  watches?: "payment" | "payout",
): Operation {
  return {
    name: `Subscription.${name}`,
    scope,
    ...(watches ? { watches } : {}),
    run: (gateway, headers, objects) =>
      callGraphql(gateway, `subscription { ${name}${args(objects)} { cursor } }`, headers),
  };
}

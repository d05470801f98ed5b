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
  readonly watches: "payment" | "payout" | undefined;
  run(gateway: Gateway, headers: Shown, objects: Objects): Promise<Outcome>;
}

let count = 0;
const fresh = () => `order-fresh-${count++}`;
const optionId = demoOptions.unconfirmed;
const subscriptionId = demoSubscriptions.active;
const card = "4111111111111111";

const { method: payments } = PaymentService;
const { method: payouts } = PayoutService;
const { method: wallet } = WalletService;
const { method: subscriptions } = SubscriptionService;
const again = { recurrentId: "unknown", amount: "1.00" };
const aboutPayment = ({ payment }: Objects) => ({
  ...{ externalId: payment, kind: EventKind.PAYMENT, operationId: "operation" },
});
const aboutPayout = ({ payout }: Objects) => ({ externalId: payout });
const aboutCustomer = ({ customer }: Objects) => ({
  customer: { externalId: customer },
  ...{ optionId, type: "card", subscriptionId, autoRenew: true },
});

/** The methods and root fields that a watch token may call. */
const watched: Readonly<Record<string, "payment" | "payout">> = {
  ...{ watchPayment: "payment", paymentUpdated: "payment" },
  ...{ watchPayout: "payout", payoutUpdated: "payout" },
};

/** By method: its scope, and the request of a call about these objects. */
const rpcs: readonly [DescMethod, scope: string, request: (objects: Objects) => object][] = [
  [payments.createPayment, "payments:write", () => paymentRequest(fresh())],
  [payments.createRecurrentPayment, "payments:write", () => ({ ...again, externalId: fresh() })],
  [payments.confirmPayment, "payments:write", () => ({ externalId: fresh() })],
  [payments.resendCallback, "callbacks:resend", aboutPayment],
  [payments.getPayment, "payments:read", aboutPayment],
  [payments.watchPayment, "payments:read", aboutPayment],
  [payments.listPayments, "events:read", () => ({ newestFirst: true })],
  [payouts.requestPayout, "payouts:write", () => payoutRequest(fresh())],
  [payouts.getPayout, "payouts:read", aboutPayout],
  [payouts.listPayouts, "events:read", () => ({ newestFirst: true })],
  [payouts.watchPayout, "payouts:read", aboutPayout],
  [wallet.findWalletItems, "wallet:read", aboutCustomer],
  [wallet.getConfirmationStatus, "wallet:read", aboutCustomer],
  [wallet.deleteWalletItem, "wallet:write", aboutCustomer],
  [subscriptions.updateSubscription, "subscriptions:write", aboutCustomer],
  [subscriptions.deactivateSubscription, "subscriptions:write", aboutCustomer],
  [OperationService.method.getOperation, "operations:read", aboutPayment],
  [EventService.method.streamEvents, "events:read", () => ({ afterCursor: "earliest" })],
  [EventService.method.listEvents, "payments:read", aboutPayment],
  [EventService.method.createWatchToken, "watch:create", aboutPayment],
];

export const rpcOperations: readonly Operation[] = rpcs.map(([method, scope, request]) => ({
  name: `${method.parent.name}.${method.name}`,
  scope,
  watches: watched[method.localName],
  run: (gateway, headers, objects) => callRpc(gateway, method, request(objects), headers),
}));

const whose = ({ customer }: Objects) => `customer: { externalId: "${customer}" }`;
const ofPayment = ({ payment }: Objects) => `externalId: "${payment}"`;
const ofPayout = ({ payout }: Objects) => `externalId: "${payout}"`;
const ofFresh = () => `externalId: "${fresh()}"`;
const ofOption = (objects: Objects) => `${whose(objects)}, optionId: "${optionId}", type: "card"`;
const ofSubscription = (objects: Objects) =>
  `${whose(objects)}, subscriptionId: "${subscriptionId}"`;
const newPayment = () => `amount: "10.00", currency: "UAH", mode: DIRECT, ${ofFresh()},
  customer: { email: "customer@shop.example" }, paymentMethod: { method: { cc:
    { number: "${card}", cvv: "123", expMonth: 12, expYear: 2035 } } }`;
const newPayout = () => `order: { currency: "UAH", description: "Salary", ${ofFresh()},
    originalAmount: "10.00" }, payer: { entityId: "entity" }, payoutType: "card",
  recipient: { card: { firstName: "Ivan", lastName: "Franko", externalId: "recipient",
    cardData: { number: "${card}" } } }`;

type Fields = Readonly<
  Record<string, readonly [scope: string | undefined, text: (objects: Objects) => string]>
>;

/** By root field: its scope, and its arguments, which for a query stand before what is selected. */
const queries: Fields = {
  payment: ["payments:read", (objects) => `(${ofPayment(objects)}) { isSuccess }`],
  payout: ["payouts:read", (objects) => `(${ofPayout(objects)}) { __typename }`],
  payments: ["events:read", () => "(first: 1) { edges { cursor } }"],
  payouts: ["events:read", () => "(first: 1) { edges { cursor } }"],
  operation: ["operations:read", (of) => `(${ofPayment(of)}, operationId: "o") { __typename }`],
  walletItems: ["wallet:read", (of) => `(${whose(of)}) { name }`],
  walletConfirmation: ["wallet:read", (of) => `(${whose(of)}, optionId: "${optionId}") { name }`],
  rateLimit: [undefined, () => " { limit }"],
};
const mutations: Fields = {
  createPayment: ["payments:write", newPayment],
  createRecurrentPayment: [
    "payments:write",
    () => `recurrentId: "unknown", ${ofFresh()}, amount: "1.00"`,
  ],
  confirmPayment: ["payments:write", ofFresh],
  resendCallback: ["callbacks:resend", ofPayment],
  requestPayout: ["payouts:write", newPayout],
  deleteWalletItem: ["wallet:write", ofOption],
  updateSubscription: ["subscriptions:write", (of) => `${ofSubscription(of)}, autoRenew: true`],
  deactivateSubscription: ["subscriptions:write", ofSubscription],
  createWatchToken: ["watch:create", (of) => `${ofPayment(of)}, kind: PAYMENT`],
};
const watches: Fields = {
  paymentUpdated: ["payments:read", ofPayment],
  payoutUpdated: ["payouts:read", ofPayout],
  events: ["events:read", () => 'after: "earliest"'],
};

export const graphqlOperations: readonly Operation[] = [
  ...fieldsOf("Query", queries, (field, text) => `{ ${field}${text} }`),
  ...fieldsOf(
    "Mutation",
    mutations,
    (field, input) =>
      `mutation { ${field}(input: { ${input} }) { __typename ... on Error { message } } }`,
  ),
  ...fieldsOf(
    "Subscription",
    watches,
    (field, args) => `subscription { ${field}(${args}) { cursor } }`,
  ),
];

function fieldsOf(
  type: string,
  fields: Fields,
  document: (field: string, text: string) => string,
): Operation[] {
  return Object.entries(fields).map(([field, [scope, text]]) => ({
    name: `${type}.${field}`,
    scope,
    watches: watched[field],
    run: (gateway, headers, objects) =>
      callGraphql(gateway, document(field, text(objects)), headers),
  }));
}

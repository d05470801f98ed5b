import { create } from "@bufbuild/protobuf";
import DataLoader from "dataloader";
import { type Call, type Core, payoutStateOf } from "../core/core.ts";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import { GetOperationRequestSchema } from "../gen/payments/v1/operation_service_pb.ts";
import {
  type OperationSummary,
  type Payment,
  PaymentSchema,
  type PaymentState,
} from "../gen/payments/v1/payment_pb.ts";
import {
  GetPaymentRequestSchema,
  type GetPaymentResponse,
} from "../gen/payments/v1/payment_service_pb.ts";
import { type Payout, PayoutSchema, type PayoutState } from "../gen/payments/v1/payout_pb.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import type { WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import {
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../gen/payments/v1/wallet_service_pb.ts";
import type { KindName } from "../kinds.ts";

/** Who a wallet read is about: the customer that was named, or none when the caller's token says. */
type Customer = CustomerIdentity | undefined;

/** The reads of one operation: the same read twice is one call. Each fails as the core does. */
export interface Loaders {
  /** Without more than its externalId when an unknown outcome is all that is known of it. */
  payment(externalId: string): Promise<Payment>;
  /** As `payment`. */
  payout(externalId: string): Promise<Payout>;
  operation(externalId: string, operationId: string): Promise<Operation>;
  paymentEvents(externalId: string, limit: number): Promise<Event[]>;
  walletItems(customer: Customer, optionId: string | undefined): Promise<WalletItem[]>;
  walletConfirmation(customer: Customer, optionId: string): Promise<WalletItem | undefined>;
  /** Takes it that a payment or payout is of this external_id, as it was asked for. */
  name(resource: Payment | Payout, externalId: string): void;
  /** The external_id that a payment or payout is of, also where the service did not say so. */
  externalIdOf(resource: Payment | Payout): string;
  /** The state of the external_id that a payment or payout is of, as it was when that was told. */
  stateOf(resource: Payment | Payout): Promise<State | undefined>;
  operationsOf(payment: Payment): Promise<readonly OperationSummary[]>;
  /** The payment or payout that an event told of. */
  resourceOf(event: Event, kind: KindName): Payment | Payout | null;
  /** What else was told of a payment or payout that was looked up by one of these loaders. */
  flagsOf(resource: Payment | Payout): OutcomeFlags | undefined;
  /** The customer whose wallet the item was read from, by one of these loaders. */
  customerOf(item: WalletItem): Customer;
}

/** Whether the calls for a payment or payout are all accounted for. */
export type OutcomeFlags = Pick<GetPaymentResponse, "outcomeUnknown" | "needsOperator">;

export interface State {
  readonly state: PaymentState | PayoutState;
  readonly cursor: string;
}

export function createLoaders(core: Core, call: Call): Loaders {
  const owners = new WeakMap<WalletItem, Customer>();

  const names = new WeakMap<Payment | Payout, string>();
  const externalIdOf = (resource: Payment | Payout) =>
    names.get(resource) ?? resource.externalId ?? "";
  const flags = new WeakMap<Payment | Payout, OutcomeFlags & State>();
  const states = new WeakMap<Payment | Payout, State>();
  const events = new WeakMap<Event, Payment | Payout>();

  const operations = new WeakMap<Payment, readonly OperationSummary[]>();

  const payment = loader(async (externalId: string) => {
    const answer = await core.getPayment(create(GetPaymentRequestSchema, { externalId }), call);
    // A copy: the events of the payment share the message.
    const payment = { ...(answer.payment ?? create(PaymentSchema)) };
    names.set(payment, externalId);
    flags.set(payment, answer);
    operations.set(payment, answer.operations);
    return payment;
  });
  const payout = loader(async (externalId: string) => {
    const answer = await core.getPayout(create(GetPayoutRequestSchema, { externalId }), call);
    const payout = { ...(answer.payout ?? create(PayoutSchema)) };
    names.set(payout, externalId);
    flags.set(payout, answer);
    return payout;
  });
  const operation = loader((key: { externalId: string; operationId: string }) =>
    core.getOperation(create(GetOperationRequestSchema, key), call),
  );
  const paymentEvents = loader(({ externalId, limit }: { externalId: string; limit: number }) =>
    core.paymentEvents(externalId, limit, call),
  );
  const walletItems = loader(async (key: { customer?: CustomerIdentity; optionId?: string }) => {
    const items = await core.findWalletItems(create(FindWalletItemsRequestSchema, key), call);
    for (const item of items) owners.set(item, key.customer);
    return items;
  });
  const walletConfirmation = loader(
    async (key: { customer?: CustomerIdentity; optionId: string }) => {
      const request = create(GetConfirmationStatusRequestSchema, key);
      const item = await core.getConfirmationStatus(request, call);
      if (item) owners.set(item, key.customer);
      return item;
    },
  );

  return {
    payment: (externalId) => payment.load(externalId),
    payout: (externalId) => payout.load(externalId),
    operation: (externalId, operationId) => operation.load({ externalId, operationId }),
    paymentEvents: (externalId, limit) => paymentEvents.load({ externalId, limit }),
    walletItems: (customer, optionId) =>
      walletItems.load({
        ...(customer ? { customer } : {}),
        ...(optionId === undefined ? {} : { optionId }),
      }),
    walletConfirmation: (customer, optionId) =>
      walletConfirmation.load({ ...(customer ? { customer } : {}), optionId }),
    name: (resource, externalId) => void names.set(resource, externalId),
    externalIdOf,
    async stateOf(resource) {
      const known = flags.get(resource) ?? states.get(resource);
      const externalId = externalIdOf(resource);
      if (known || !externalId) return known;
      const state =
        resource.$typeName === PaymentSchema.typeName
          ? await core.paymentStateAfter(resource, externalId, call)
          : await core.payoutStateAfter(resource as Payout, externalId, call);
      states.set(resource, state);
      return state;
    },
    async operationsOf(resource) {
      const externalId = externalIdOf(resource);
      if (!externalId) return [];
      const known = flags.has(resource) ? resource : await payment.load(externalId);
      return operations.get(known) ?? [];
    },
    resourceOf(event, kind) {
      const { resource } = event;
      if (resource.case !== kind) return null;
      // A copy: what is remembered of it is this event's.
      const known = events.get(event) ?? { ...resource.value };
      names.set(known, event.externalId);
      events.set(event, known);
      const state = statesOf[kind](event.state);
      if (state !== undefined) states.set(known, { state, cursor: event.cursor });
      return known;
    },
    flagsOf: (resource) => flags.get(resource),
    customerOf: (item) => owners.get(item),
  };
}

/** The state of an event, as its payment or payout has it. */
const statesOf: Readonly<Record<KindName, (state: PaymentState) => State["state"] | undefined>> = {
  payment: (state) => state,
  payout: payoutStateOf,
};

/** The upstream reads one thing at a time, so there is no batch to send: what counts is the memory. */
function loader<Key, Value>(read: (key: Key) => Promise<Value>): DataLoader<Key, Value, string> {
  return new DataLoader((keys) => Promise.all(keys.map((key) => read(key).catch(asError))), {
    cacheKeyFn: (key) => JSON.stringify(key),
  });
}

/** DataLoader tells failures from values by their class. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a read failed", { cause: thrown });
}

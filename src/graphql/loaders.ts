import { create } from "@bufbuild/protobuf";
import DataLoader from "dataloader";
import {
  type Call,
  type Core,
  type History,
  type HistoryPage,
  payoutStateOf,
} from "../core/core.ts";
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
import type { KindName } from "../model/kinds.ts";

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
  history(kind: KindName, externalId: string, page: HistoryPage): Promise<History>;
  walletItems(customer: Customer, optionId: string | undefined): Promise<WalletItem[]>;
  walletConfirmation(customer: Customer, optionId: string): Promise<WalletItem | undefined>;
  /** Takes it that a payment or payout is of this external_id, as it was asked for. */
  name(resource: Payment | Payout, externalId: string): void;
  /** The external_id that a payment or payout is of, also where the service did not say so. */
  externalIdOf(resource: Payment | Payout): string;
  /** The state of the external_id that a payment or payout is of, as it was when that was told. */
  stateOf(resource: Payment | Payout): State | undefined | Promise<State | undefined>;
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

/** @param read runs each read, as `createMemory` does */
export function createLoaders(core: Core, call: Call, read: Memory = createMemory()): Loaders {
  return new OperationLoaders(core, call, read);
}

class OperationLoaders implements Loaders {
  readonly #core: Core;
  readonly #call: Call;
  readonly #read: Memory;
  /** Made when the first thing is to be remembered. They go with the operation, or with the event. */
  #notes: Map<object, Notes> | undefined;

  constructor(core: Core, call: Call, read: Memory) {
    this.#core = core;
    this.#call = call;
    this.#read = read;
  }

  #notesOf(about: object): Notes {
    this.#notes ??= new Map();
    let one = this.#notes.get(about);
    if (!one) {
      one = {};
      this.#notes.set(about, one);
    }
    return one;
  }

  payment(externalId: string): Promise<Payment> {
    return this.#read("payment", [externalId], async () => {
      const request = create(GetPaymentRequestSchema, { externalId });
      const answer = await this.#core.getPayment(request, this.#call);
      // A copy: the events of the payment share the message.
      const payment = { ...(answer.payment ?? create(PaymentSchema)) };
      const { operations } = answer;
      Object.assign(this.#notesOf(payment), { name: externalId, flags: answer, operations });
      return payment;
    });
  }

  payout(externalId: string): Promise<Payout> {
    return this.#read("payout", [externalId], async () => {
      const request = create(GetPayoutRequestSchema, { externalId });
      const answer = await this.#core.getPayout(request, this.#call);
      const payout = { ...(answer.payout ?? create(PayoutSchema)) };
      Object.assign(this.#notesOf(payout), { name: externalId, flags: answer });
      return payout;
    });
  }

  operation(externalId: string, operationId: string): Promise<Operation> {
    return this.#read("operation", [externalId, operationId], () => {
      const request = create(GetOperationRequestSchema, { externalId, operationId });
      return this.#core.getOperation(request, this.#call);
    });
  }

  paymentEvents(externalId: string, limit: number): Promise<Event[]> {
    return this.#read("paymentEvents", [externalId, limit], () =>
      this.#core.paymentEvents(externalId, limit, this.#call),
    );
  }

  history(kind: KindName, externalId: string, page: HistoryPage): Promise<History> {
    return this.#read("history", [kind, externalId, page], async () => {
      if (!externalId) return noHistory;
      const of = { ...page, externalId };
      return kind === "payment"
        ? this.#core.paymentHistory(of, this.#call)
        : this.#core.payoutHistory(of, this.#call);
    });
  }

  walletItems(customer: Customer, optionId: string | undefined): Promise<WalletItem[]> {
    return this.#read("walletItems", [customer, optionId], async () => {
      const request = create(FindWalletItemsRequestSchema, {
        ...(customer ? { customer } : {}),
        ...(optionId === undefined ? {} : { optionId }),
      });
      const items = await this.#core.findWalletItems(request, this.#call);
      for (const item of items) this.#notesOf(item).owner = customer;
      return items;
    });
  }

  walletConfirmation(customer: Customer, optionId: string): Promise<WalletItem | undefined> {
    return this.#read("walletConfirmation", [customer, optionId], async () => {
      const key = { ...(customer ? { customer } : {}), optionId };
      const request = create(GetConfirmationStatusRequestSchema, key);
      const item = await this.#core.getConfirmationStatus(request, this.#call);
      if (item) this.#notesOf(item).owner = customer;
      return item;
    });
  }

  name(resource: Payment | Payout, externalId: string): void {
    this.#notesOf(resource).name = externalId;
  }

  externalIdOf(resource: Payment | Payout): string {
    return this.#notes?.get(resource)?.name ?? resource.externalId ?? "";
  }

  stateOf(resource: Payment | Payout): State | undefined | Promise<State | undefined> {
    const { flags, state: earlier } = this.#notes?.get(resource) ?? {};
    const known = flags ?? earlier;
    const externalId = this.externalIdOf(resource);
    return known || !externalId ? known : this.#stateAfter(resource, externalId);
  }

  async #stateAfter(resource: Payment | Payout, externalId: string): Promise<State | undefined> {
    const state =
      resource.$typeName === PaymentSchema.typeName
        ? await this.#core.paymentStateAfter(resource, externalId, this.#call)
        : await this.#core.payoutStateAfter(resource as Payout, externalId, this.#call);
    this.#notesOf(resource).state = state;
    return state;
  }

  async operationsOf(resource: Payment): Promise<readonly OperationSummary[]> {
    const externalId = this.externalIdOf(resource);
    if (!externalId) return [];
    const known = this.#notes?.get(resource)?.flags ? resource : await this.payment(externalId);
    return this.#notes?.get(known)?.operations ?? [];
  }

  resourceOf(event: Event, kind: KindName): Payment | Payout | null {
    const { resource } = event;
    if (resource.case !== kind) return null;
    // A copy: what is remembered of it is this event's.
    const ofEvent = this.#notesOf(event);
    ofEvent.resource ??= { ...resource.value };
    const about = this.#notesOf(ofEvent.resource);
    about.name = event.externalId;
    const state = statesOf[kind](event.state);
    if (state !== undefined) about.state = { state, cursor: event.cursor };
    return ofEvent.resource;
  }

  flagsOf(resource: Payment | Payout): OutcomeFlags | undefined {
    return this.#notes?.get(resource)?.flags;
  }

  customerOf(item: WalletItem): Customer {
    return this.#notes?.get(item)?.owner;
  }
}

/** Of what has no id there is none. */
const noHistory: History = { edges: [], hasNextPage: false, hasPreviousPage: false };

/** The state of an event, as its payment or payout has it. */
const statesOf: Readonly<Record<KindName, (state: PaymentState) => State["state"] | undefined>> = {
  payment: (state) => state,
  payout: payoutStateOf,
};

/** What one operation remembers of a message beside it. */
interface Notes {
  /** The external_id that it was asked for by. */
  name?: string;
  flags?: OutcomeFlags & State;
  state?: State;
  operations?: readonly OperationSummary[];
  /** The customer whose wallet it is in. */
  owner?: Customer;
  /** The payment or payout of an event. */
  resource?: Payment | Payout;
}

/** A read, and what tells it from others. */
interface Read {
  readonly id: string;
  readonly read: () => Promise<unknown>;
}

type Memory = <Value>(
  kind: string,
  key: readonly unknown[],
  read: () => Promise<Value>,
) => Promise<Value>;

/**
 * One DataLoader for all that an operation reads, made when something is: what was read once, or is
 * being read, is not read again. A failure is remembered too. The upstream reads one thing at a time,
 * so that a batch has nothing to send together.
 */
function createMemory(): Memory {
  let loader: DataLoader<Read, unknown, string> | undefined;
  return <Value>(kind: string, key: readonly unknown[], read: () => Promise<Value>) => {
    loader ??= new DataLoader<Read, unknown, string>(readAll, {
      cacheKeyFn: ({ id }) => id,
      // Nothing is gained by waiting for more.
      batchScheduleFn: queueMicrotask,
    });
    return loader.load({ id: JSON.stringify([kind, key]), read }) as Promise<Value>;
  };
}

function readAll(reads: readonly Read[]): Promise<unknown[]> {
  return Promise.all(reads.map(({ read }) => read().catch(asError)));
}

/** DataLoader tells failures from values by their class. */
function asError(thrown: unknown): Error {
  return thrown instanceof Error ? thrown : new Error("a read failed", { cause: thrown });
}

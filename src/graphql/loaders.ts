import { create, type MessageInitShape, toJsonString } from "@bufbuild/protobuf";
import DataLoader from "dataloader";
import { type Call, type Core, type History, type Listing, methods } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { CustomerIdentity } from "../gen/payments/v1/customer_pb.ts";
import {
  type ListEventsRequest,
  ListEventsRequestSchema,
} from "../gen/payments/v1/event_service_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import { GetOperationRequestSchema } from "../gen/payments/v1/operation_service_pb.ts";
import {
  type OperationSummary,
  type Payment,
  PaymentSchema,
} from "../gen/payments/v1/payment_pb.ts";
import type {
  GetPaymentResponse,
  ListPaymentsRequestSchema,
} from "../gen/payments/v1/payment_service_pb.ts";
import { type Payout, PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import type {
  GetPayoutResponse,
  ListPayoutsRequestSchema,
} from "../gen/payments/v1/payout_service_pb.ts";
import type { WalletItem } from "../gen/payments/v1/wallet_pb.ts";
import {
  FindWalletItemsRequestSchema,
  GetConfirmationStatusRequestSchema,
} from "../gen/payments/v1/wallet_service_pb.ts";
import { type KindName, kindNamed } from "../model/kinds.ts";

/** Which page of a list is asked for. */
export type PageRequest = Pick<ListEventsRequest, "pageSize" | "pageToken" | "newestFirst">;

type ListRequest = MessageInitShape<
  typeof ListPaymentsRequestSchema | typeof ListPayoutsRequestSchema
>;

/** What is called after payments and payouts: their types, and methods of the contract. */
export const names = {
  payment: { type: "Payment", get: "getPayment", list: "listPayments", watch: "watchPayment" },
  payout: { type: "Payout", get: "getPayout", list: "listPayouts", watch: "watchPayout" },
} as const;

/** The customer of a wallet read; undefined if the caller's token names the customer. */
type Customer = CustomerIdentity | undefined;

/**
 * What is known of a payment or payout besides its message: whether an outcome is unknown, or an
 * operator has to find it out, only of what was read.
 */
export type State = Pick<GetPaymentResponse | GetPayoutResponse, "state" | "cursor"> &
  Partial<Pick<GetPaymentResponse, "outcomeUnknown" | "needsOperator">>;

/**
 * The reads of one operation, each made only once: one that is done, failed or in progress is not
 * made again. They reject with the core's errors.
 */
export class Loaders {
  readonly #core: Core;
  readonly #call: Call;
  /** All reads, by what they ask for. Created at the first one. */
  #reads: DataLoader<Read, unknown, string> | undefined;

  constructor(core: Core, call: Call) {
    this.#core = core;
    this.#call = call;
  }

  /** The merchant account that they read from. */
  get account(): string {
    return this.#call.caller.account;
  }

  /**
   * The loaders of another account.
   * @param callIn the operation's call in that account; called once
   */
  in(account: string, callIn: () => Promise<Call>): Promise<Loaders> {
    return this.#read("in", [account], async () => new Loaders(this.#core, await callIn()));
  }

  /** The loaders that a payment or payout was read by. */
  of(resource: Payment | Payout): Loaders {
    return notesOf(resource).loaders ?? this;
  }

  /** Only the externalId is set if nothing but a call with an unknown outcome is known. */
  known(kind: KindName, externalId: string): Promise<Payment | Payout> {
    return this.#read(kind, [externalId], async () => {
      const name = names[kind].get;
      const request = create(methods[name].input, { externalId });
      return this.#noted(externalId, await this.#core[name](request as never, this.#call));
    });
  }

  /** One page, each as `known` returns it; a payout without asking the service. */
  list(kind: KindName, asked: ListRequest): Promise<Listing<Payment | Payout>> {
    const name = names[kind].list;
    const request = create(methods[name].input, asked);
    return this.#read(name, [toJsonString(methods[name].input, request)], async () => {
      const { edges, ...page } = await this.#core[name](request as never, this.#call);
      const nodes = edges.map((one) => ({ ...one, node: this.#noted(one.externalId, one.node) }));
      return { ...page, edges: nodes };
    });
  }

  #noted(name: string, answer: GetPaymentResponse | GetPayoutResponse): Payment | Payout {
    const notes = { name, state: answer, loaders: this };
    if (answer.$typeName === "payments.v1.GetPayoutResponse") {
      return noted(answer.payout ?? create(PayoutSchema), notes);
    }
    const { payment = create(PaymentSchema), operations } = answer;
    return noted(payment, { ...notes, operations });
  }

  operation(externalId: string, operationId: string): Promise<Operation> {
    return this.#read("operation", [externalId, operationId], () => {
      const request = create(GetOperationRequestSchema, { externalId, operationId });
      return this.#core.getOperation(request, this.#call);
    });
  }

  history(kind: KindName, externalId: string, page: PageRequest): Promise<History> {
    return this.#read("history", [kind, externalId, page], () => {
      const request = { ...page, kind: kindNamed(kind), externalId };
      return this.#core.listEvents(create(ListEventsRequestSchema, request), this.#call);
    });
  }

  walletItems(customer: Customer, optionId: string | undefined): Promise<WalletItem[]> {
    return this.#read("walletItems", [customer, optionId], async () => {
      const request = create(FindWalletItemsRequestSchema, { customer, optionId });
      const items = await this.#core.findWalletItems(request, this.#call);
      return items.map((item) => noted(item, { owner: customer }));
    });
  }

  walletConfirmation(customer: Customer, optionId: string): Promise<WalletItem | undefined> {
    return this.#read("walletConfirmation", [customer, optionId], async () => {
      const request = create(GetConfirmationStatusRequestSchema, { customer, optionId });
      const item = await this.#core.getConfirmationStatus(request, this.#call);
      return item && noted(item, { owner: customer });
    });
  }

  async operationsOf(resource: Payment): Promise<readonly OperationSummary[]> {
    const { operations } = notesOf(resource);
    if (operations) return operations;
    return notesOf(await this.known("payment", externalIdOf(resource))).operations ?? [];
  }

  /** Not batched with others, since the upstream has no request for several at once. */
  #read<Value>(kind: string, key: readonly unknown[], read: () => Promise<Value>): Promise<Value> {
    this.#reads ??= new DataLoader<Read, unknown, string>(readAll, {
      cacheKeyFn: ({ id }) => id,
      // Do not wait for more reads: they would not be sent together.
      batchScheduleFn: queueMicrotask,
    });
    return this.#reads.load({ id: JSON.stringify([kind, key]), read }) as Promise<Value>;
  }
}

/** The result of a read, or null if it fails with NOT_FOUND. @throws its other errors */
export async function orNull<Value>(read: Promise<Value>): Promise<Value | null> {
  try {
    return await read;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "NOT_FOUND") return null;
    throw error;
  }
}

/** The external_id in the request for a payment or payout, which the service may not return. */
export function externalIdOf(resource: Payment | Payout): string {
  return notesOf(resource).name ?? "";
}

const notesKey = Symbol("notes");

/** A copy of a message with notes of its own: the log's events share the message. */
export function noted<Message extends object>(message: Message, notes: Notes): Message {
  return { ...message, [notesKey]: notes };
}

export function notesOf(message: { readonly [notesKey]?: Notes } | object): Notes {
  return (notesKey in message && message[notesKey]) || {};
}

/** What one operation knows about a message, besides its fields. */
interface Notes {
  /** The external_id in the request for it. */
  name?: string;
  /** That of the external_id, as of this payment or payout. */
  state?: State;
  operations?: readonly OperationSummary[];
  /** The loaders that read it. */
  loaders?: Loaders;
  /** The customer from whose wallet the item was read. */
  owner?: Customer;
}

/** A read and its cache key. */
interface Read {
  readonly id: string;
  readonly read: () => Promise<unknown>;
}

/** DataLoader takes an error among the values for that of its read. */
function readAll(reads: readonly Read[]): Promise<unknown[]> {
  return Promise.all(reads.map(({ read }) => read().catch((error) => error)));
}

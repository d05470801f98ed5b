import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { type Event, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  FiscalizationStatus,
  PaymentMethodSchema,
  PaymentOperation,
  PaymentSchema,
  PaymentStateSchema,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../src/gen/payments/v1/payout_pb.ts";
import { currentState } from "../../src/ledger/current.ts";
import { paymentEntry, payoutEntry } from "../../src/ledger/entry.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry } from "../../src/ledger/log.ts";

export interface Told {
  readonly externalId?: string;
  readonly paymentId?: string;
  /** One that the contract lacks is told as the codec reads it. */
  readonly operation?: string;
  readonly operationId?: string;
  /** As `operation`. */
  readonly status?: string;
  readonly statusCode?: string;
  readonly amount?: string;
  readonly isSuccess?: boolean;
  /** State of the receipt. */
  readonly receipt?: "pending" | "success" | "failed";
  /** Whether an answer marks the payment as made with `confirm: false`. */
  readonly held?: boolean;
  /** Id of the call whose answer this is. */
  readonly call?: string;
  readonly source?: "callback" | "response" | "reconciliation";
  /** A callback's raw bytes; derived from the other fields by default. */
  readonly bytes?: string;
}

/** An entry of a payment, from a callback by default. */
export function payment(told: Told = {}): Entry {
  const { externalId = "order-1", paymentId = "pay-1", source = "callback" } = told;
  const { operation = "payment", status = "pending" } = told;
  const message = create(PaymentSchema, {
    externalId,
    operation: enumValue(PaymentOperation, operation),
    unrecognized: [
      ...unrecognizedOf(PaymentOperation, "operation", operation),
      ...unrecognizedOf(PaymentStatus, "details.status", status),
    ],
    ...(told.isSuccess !== undefined && { isSuccess: told.isSuccess }),
    details: {
      paymentId,
      status: enumValue(PaymentStatus, status),
      ...(told.statusCode !== undefined && { statusCode: told.statusCode }),
      ...(told.operationId !== undefined && { operationId: told.operationId }),
      ...(told.amount !== undefined && { amount: told.amount, currency: "UAH" }),
      ...(told.receipt !== undefined && {
        fiscalization: {
          status:
            FiscalizationStatus[told.receipt.toUpperCase() as keyof typeof FiscalizationStatus],
        },
      }),
    },
  });
  const raw = Buffer.from(told.bytes ?? JSON.stringify({ ...told, externalId, paymentId }));
  const entry = paymentEntry(message, {
    source: EventSource[source.toUpperCase() as keyof typeof EventSource],
    ...(source === "callback" && { raw }),
    ...(told.held !== undefined && { held: told.held }),
    ...(told.call !== undefined && { call: told.call }),
  });
  assert(entry);
  return entry;
}

function enumValue<Value extends number>(values: Record<string, string | Value>, name: string) {
  return (values[name.toUpperCase()] ?? 0) as Value;
}

function unrecognizedOf(values: object, field: string, value: string) {
  return value.toUpperCase() in values ? [] : [{ field, value }];
}

export const cardToken = "card-token-7f31";

/** A payment whose event has the token of its card. */
export function paidByCard(told: Told = {}): Entry {
  const entry = payment({ status: "success", ...told });
  const { resource } = entry.event;
  assert.ok(resource.case === "payment");
  resource.value.paymentMethod = create(PaymentMethodSchema, {
    ccToken: { token: cardToken, mask: "41**11" },
  });
  return entry;
}

/** A callback of a payment of its own. */
export function numbered(n: number): Entry {
  return payment({ externalId: `order-${n}`, paymentId: `p-${n}` });
}

/** An entry of a payout, from a callback. */
export function payout(
  told: { externalId?: string; transactionId?: string; status?: string } = {},
): Entry {
  const { externalId = "payout-1", transactionId = "tx-1", status = "pending" } = told;
  const entry = payoutEntry(create(PayoutSchema, { externalId, transactionId, status }), {
    source: EventSource.CALLBACK,
    raw: Buffer.from(JSON.stringify({ externalId, transactionId, status })),
  });
  assert(entry);
  return entry;
}

/** An event's step: its operation and status, such as `payment:success`. */
export function step(event: Event): string {
  if (event.resource.case === "payout") return `payout:${event.resource.value.status}`;
  const { operation = 0, details } = event.resource.value ?? {};
  const name = (values: object, value: number | undefined) =>
    Object.entries(values)
      .find(([, number]) => number === value)?.[0]
      .toLowerCase();
  return `${name(PaymentOperation, operation)}:${name(PaymentStatus, details?.status)}`;
}

/** The step that a payment of the account `shop` shows. */
export async function currentStep(log: Ledger, externalId = "order-1") {
  const snapshot = await snapshotOf(log, "shop", EventKind.PAYMENT, externalId);
  const current = snapshot && currentState(snapshot);
  return current && step(current.event);
}

/** What is known of an external_id; undefined while there is no event of it. */
export async function snapshotOf(log: Ledger, ...of: Parameters<Ledger["known"]>) {
  const known = await log.known(...of);
  return known.cursor === "" ? undefined : known;
}

/** The next `count` events; fails if the iteration ends before that. */
export async function take(events: AsyncIterable<Event>, count: number): Promise<Event[]> {
  const iterator = events[Symbol.asyncIterator]();
  const taken: Event[] = [];
  while (taken.length < count) {
    const { done, value } = await iterator.next();
    assert(!done, `the events ended after ${taken.length} of ${count}`);
    taken.push(value);
  }
  return taken;
}

/** The name of the state that an event carries. */
export function stateOn({ state }: Event): string | undefined {
  return PaymentStateSchema.value[state]?.localName;
}

export const cursors = (events: readonly Event[]): string[] => events.map(({ cursor }) => cursor);
export const steps = (events: readonly Event[]): string[] => events.map(step);

/** All permutations of a list. */
export function ordersOf<T>(list: readonly T[]): T[][] {
  if (list.length <= 1) return [[...list]];
  return list.flatMap((first, at) =>
    ordersOf(list.toSpliced(at, 1)).map((rest) => [first, ...rest]),
  );
}

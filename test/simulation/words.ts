import type { DescEnum } from "@bufbuild/protobuf";
import {
  CallOutcome,
  CallOutcomeSchema,
  type Event,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentOperationSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import { placeIn, positionOf } from "../../src/stores/cursor.ts";
import type { LoggedEvent } from "./history.ts";
import { type Account, accounts, nameIn } from "./merchant.ts";

/**
 * An event in the words of the contract; its time counts from `sinceMs`, the history's beginning.
 */
export function eventOf(
  event: Event,
  sinceMs: number,
  account: Account = accounts[0],
): LoggedEvent {
  const { cursor, state, source, resource, callOutcome } = event;
  const externalId = nameIn(account, event.externalId);
  const isCallback = source === EventSource.CALLBACK;
  return {
    ...{ account, isPaying: isPaying(resource), isFinal: event.final && isPaying(resource) },
    ...{ cursor, externalId, state: nameOf(PaymentStateSchema, state) },
    // By the store's clock: the wall clocks of gateways, which make `receivedAt`, may differ.
    storedMs: positionOf(placeIn(cursor))[0] - sinceMs,
    ...(isCallback && { callback: callbackOf(resource) }),
    ...(callOutcome !== CallOutcome.UNSPECIFIED && {
      callOutcome: nameOf(CallOutcomeSchema, callOutcome),
    }),
  };
}

function callbackOf(resource: Event["resource"]): string {
  if (resource.case === "payout") {
    return `${resource.value.transactionId} payout ${resource.value.status}`;
  }
  const { details, operation } = resource.value ?? {};
  const status = nameOf(PaymentStatusSchema, details?.status).toLowerCase();
  const by = nameOf(PaymentOperationSchema, operation).toLowerCase();
  return [details?.paymentId, by, status, details?.operationId].filter(Boolean).join(" ");
}

function isPaying({ case: kind, value }: Event["resource"]): boolean {
  if (kind !== "payment") return kind === "payout";
  return !takingBack.has(value.operation);
}

const takingBack: ReadonlySet<PaymentOperation | undefined> = new Set([
  ...[PaymentOperation.REFUND, PaymentOperation.CANCEL, PaymentOperation.LOOKUP],
]);

/** The contract's name of an enum value, without the prefix that all names of the enum share. */
export function nameOf({ value, sharedPrefix = "" }: DescEnum, number = 0): string {
  return (value[number]?.name ?? "").slice(sharedPrefix.length);
}

import type { DescEnum } from "@bufbuild/protobuf";
import { decodeCursor } from "../../src/events/cursor.ts";
import {
  CallOutcome,
  CallOutcomeSchema,
  type Event,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperationSchema,
  PaymentStateSchema,
  PaymentStatusSchema,
} from "../../src/gen/payments/v1/payment_pb.ts";
import type { LoggedEvent } from "./history.ts";

/**
 * An event in the words of the contract; its time counts from `sinceMs`, the history's beginning.
 */
export function eventOf(event: Event, sinceMs: number): LoggedEvent {
  const { cursor, externalId, state, source, resource, callOutcome } = event;
  const isCallback = source === EventSource.CALLBACK;
  return {
    ...{ cursor, externalId, state: nameOf(PaymentStateSchema, state) },
    // By the store's clock: the wall clocks of gateways, which make `receivedAt`, may differ.
    storedMs: decodeCursor(cursor).ms - sinceMs,
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
  return `${details?.paymentId} ${nameOf(PaymentOperationSchema, operation).toLowerCase()} ${status}`;
}

/** The contract's name of an enum value, without the prefix that all names of the enum share. */
export function nameOf({ value, sharedPrefix = "" }: DescEnum, number = 0): string {
  return (value[number]?.name ?? "").slice(sharedPrefix.length);
}

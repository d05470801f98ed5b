import type { Event } from "../../gen/payments/v1/event_pb.ts";
import { type Payment, PaymentSchema } from "../../gen/payments/v1/payment_pb.ts";
import { type Payout, PayoutSchema } from "../../gen/payments/v1/payout_pb.ts";
import { messageType } from "./message-type.ts";

/** The scalars of a payout, now and in an event. */
export const payoutScalars = {
  originalAmount: "Decimal",
  payerAmount: "Decimal",
  payerOuterFee: "Decimal",
  recipientAmount: "Decimal",
  transactionId: "UUID",
} as const;

/**
 * What an event told of a payment. It has no `id` and none of the fields that are of today: a
 * normalized cache would otherwise store it as the payment, and an old event would overwrite that.
 */
export const PaymentSnapshot = messageType(PaymentSchema, {
  name: "PaymentSnapshot",
  description:
    "A payment as one event told it: what the payments service said at that moment. The event has " +
    "the `state` after it; what holds now is a `Payment`.",
  always: ["externalId"],
  omit: ["id"],
});

/** As `PaymentSnapshot`, of a payout. */
export const PayoutSnapshot = messageType(PayoutSchema, {
  name: "PayoutSnapshot",
  description:
    "A payout as one event told it: what the payments service said at that moment. The event has " +
    "the `state` after it; what holds now is a `Payout`.",
  always: ["externalId"],
  scalars: payoutScalars,
});

/** The payment or payout in an event, with the event's externalId. */
export function snapshotOf<Resource extends Payment | Payout>(
  resource: Resource,
  { externalId }: Event,
): Resource {
  return resource.externalId === externalId ? resource : { ...resource, externalId };
}

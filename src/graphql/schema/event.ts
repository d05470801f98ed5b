import { create } from "@bufbuild/protobuf";
import {
  EventKind,
  EventKindSchema,
  type Event as EventMessage,
  EventSchema,
} from "../../gen/payments/v1/event_pb.ts";
import {
  CreateWatchTokenResponseSchema,
  EventService,
  StreamEventsRequestSchema,
} from "../../gen/payments/v1/event_service_pb.ts";
import {
  type Payment,
  PaymentSchema,
  PaymentStateSchema,
} from "../../gen/payments/v1/payment_pb.ts";
import { type Payout, PayoutSchema, PayoutStateSchema } from "../../gen/payments/v1/payout_pb.ts";
import { type Kind, type KindName, kindOf } from "../../model/kinds.ts";
import { createLive } from "../context.ts";
import { received } from "../live.ts";
import { builder } from "./builder.ts";
import { describe, enumRef, knownValue, messageFields, messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

const always = ["kind", "source", "receivedAt"] as const;
const { paymentId, transactionId } = EventSchema.field;

const eventTypes = {
  [EventKind.PAYMENT]: "PaymentEvent",
  [EventKind.PAYOUT]: "PayoutEvent",
} as const satisfies Readonly<Record<Kind, string>>;

/** The scalars of a payout, now and in an event. */
export const payoutScalars = {
  originalAmount: "Decimal",
  payerAmount: "Decimal",
  payerOuterFee: "Decimal",
  recipientAmount: "Decimal",
  transactionId: "UUID",
} as const;

/**
 * What an event told of a payment or payout. It has no `id` and none of the fields that are of today:
 * a normalized cache would otherwise store it as the payment, and an old event would overwrite that.
 */
const snapshotOptions = (kind: KindName, type: string) => ({
  name: `${type}Snapshot`,
  description:
    `A ${kind} as one event told it: what the payments service said at that moment. The event has ` +
    `the \`state\` after it; what holds now is a \`${type}\`.`,
  always: ["externalId"] as const,
});
const PaymentSnapshot = messageType(PaymentSchema, {
  ...snapshotOptions("payment", "Payment"),
  omit: ["id"],
});
const PayoutSnapshot = messageType(PayoutSchema, {
  ...snapshotOptions("payout", "Payout"),
  scalars: payoutScalars,
});

/** The payment or payout in an event, with the event's externalId. */
function snapshotOf<Resource extends Payment | Payout>(
  resource: Resource,
  { externalId }: EventMessage,
): Resource {
  return resource.externalId === externalId ? resource : { ...resource, externalId };
}

const Event = builder.interfaceRef<EventMessage>("Event").implement({
  description: describe(EventSchema),
  resolveType: ({ kind }) => eventTypes[kindOf(kind)],
  fields: (t) =>
    messageFields(t, EventSchema, {
      always,
      omit: ["paymentId", "transactionId", "state", "payoutState"],
    }),
});

export const PaymentEvent = builder.objectRef<EventMessage>("PaymentEvent").implement({
  description: "Something became known of a payment.",
  interfaces: [Event],
  fields: (t) => ({
    paymentId: t.exposeString("paymentId", { description: describe(paymentId) }),
    state: t.field({
      description: "Is it paid? Of the externalId as a whole, after this event.",
      type: enumRef(PaymentStateSchema) as never,
      resolve: ({ state }) => knownValue(PaymentStateSchema, state) as never,
    }),
    payment: t.field({
      description: "The payment as this event told it.",
      type: PaymentSnapshot,
      resolve: (event) =>
        event.resource.case === "payment" ? snapshotOf(event.resource.value, event) : null,
    }),
  }),
});

export const PayoutEvent = builder.objectRef<EventMessage>("PayoutEvent").implement({
  description: "Something became known of a payout.",
  interfaces: [Event],
  fields: (t) => ({
    transactionId: t.exposeString("transactionId", { description: describe(transactionId) }),
    state: t.field({
      description:
        "Is it paid out? Of the externalId as a whole, after this event. A selection that also has " +
        "the `state` of a `PaymentEvent` renames one of them, since their types differ: " +
        "`payoutState: state`.",
      type: enumRef(PayoutStateSchema) as never,
      resolve: (event) => knownValue(PayoutStateSchema, event.payoutState) as never,
    }),
    payout: t.field({
      description: "The payout as this event told it.",
      type: PayoutSnapshot,
      resolve: (event) =>
        event.resource.case === "payout" ? snapshotOf(event.resource.value, event) : null,
    }),
  }),
});

builder.subscriptionField("events", (t) =>
  t.field({
    description:
      "Every payment and payout event of the merchant account, live: from now on without `after`, " +
      'from the oldest that is kept with `after: "earliest"`, else behind that event. It ends as ' +
      "`paymentUpdated` does.",
    type: Event,
    nullable: false,
    args: {
      after: t.arg.string({
        description: "Go on behind the event with this cursor; `earliest` for all that are kept.",
      }),
      kinds: t.arg({
        description: "Only events about these. Default: all.",
        type: [enumRef(EventKindSchema)],
      }),
    },
    subscribe: (_, { kinds, after }, context) =>
      createLive(context, after, (core, call, afterCursor) => {
        const asked = { afterCursor, kinds: (kinds ?? []) as EventKind[] };
        return core.streamEvents(create(StreamEventsRequestSchema, asked), call);
      }),
    resolve: (delivery) => received(delivery),
  }),
);

const WatchToken = messageType(CreateWatchTokenResponseSchema, {
  name: "WatchToken",
  description: "A token that allows to watch one payment or payout.",
  always: ["expiresAt"],
});

mutation(EventService.method.createWatchToken, {
  description:
    "Makes a short-lived token that lets its holder watch one payment or payout, and nothing else: " +
    "hand it to a browser, whose `EventSource` gives it as `?watch_token=`.",
  success: WatchToken,
  run: (core, request, call) => core.createWatchToken(request, call),
});

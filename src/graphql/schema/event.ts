import { create, type DescEnum } from "@bufbuild/protobuf";
import {
  type EventKind,
  EventKindSchema,
  type Event as EventMessage,
  EventSchema,
} from "../../gen/payments/v1/event_pb.ts";
import {
  CreateWatchTokenResponseSchema,
  EventService,
  StreamEventsRequestSchema,
} from "../../gen/payments/v1/event_service_pb.ts";
import { PaymentSchema } from "../../gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../../gen/payments/v1/payout_pb.ts";
import { type KindName, kindOf, kinds } from "../../model/kinds.ts";
import { createLive } from "../context.ts";
import { received } from "../live.ts";
import { names } from "../loaders.ts";
import { builder } from "./builder.ts";
import { describe, enumRef, knownValue, messageFields, messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

/**
 * What an event told of a payment or payout. It has no `id` and none of the fields that are of today:
 * a normalized cache would otherwise store it as the payment, and an old event would overwrite that.
 */
const snapshotOptions = (kind: KindName) => ({
  name: `${names[kind].type}Snapshot`,
  description:
    `A ${kind} as one event told it: what the payments service said at that moment. The event has ` +
    `the \`state\` after it; what holds now is a \`${names[kind].type}\`.`,
  always: ["externalId"] as const,
});
const snapshots = {
  payment: messageType(PaymentSchema, { ...snapshotOptions("payment"), omit: ["id"] }),
  payout: messageType(PayoutSchema, snapshotOptions("payout")),
};

const eventNames = { payment: "PaymentEvent", payout: "PayoutEvent" } as const;

const Event = builder.interfaceRef<EventMessage>("Event").implement({
  description: describe(EventSchema),
  resolveType: ({ kind }) => eventNames[kinds[kindOf(kind)].name],
  fields: (t) =>
    messageFields(t, EventSchema, {
      always: ["kind", "source", "receivedAt"],
      omit: ["paymentId", "transactionId", "state", "payoutState"],
    }),
});

/** @param id, state the fields of events of this kind. @param isPaid describes the state */
function eventType(
  kind: KindName,
  id: "paymentId" | "transactionId",
  state: "state" | "payoutState",
  isPaid: string,
) {
  const states = EventSchema.field[state].enum as DescEnum;
  return builder.objectRef<EventMessage>(eventNames[kind]).implement({
    description: `Something became known of a ${kind}.`,
    interfaces: [Event],
    fields: (t) => ({
      [id]: t.exposeString(id, { description: describe(EventSchema.field[id]) }),
      state: t.field({
        description: isPaid,
        type: enumRef(states) as never,
        resolve: (event) => knownValue(states, event[state]) as never,
      }),
      [kind]: t.field({
        description: `The ${kind} as this event told it.`,
        type: snapshots[kind] as never,
        resolve({ resource, externalId }) {
          if (resource.case !== kind) return null as never;
          const { value } = resource;
          return (value.externalId === externalId ? value : { ...value, externalId }) as never;
        },
      }),
    }),
  });
}

export const PaymentEvent = eventType(
  "payment",
  "paymentId",
  "state",
  "Is it paid? Of the externalId as a whole, after this event.",
);
export const PayoutEvent = eventType(
  "payout",
  "transactionId",
  "payoutState",
  "Is it paid out? Of the externalId as a whole, after this event. A selection that also has the " +
    "`state` of a `PaymentEvent` renames one of them, since their types differ: " +
    "`payoutState: state`.",
);

builder.subscriptionField("events", (t) =>
  t.field({
    description: describe(EventService.method.streamEvents),
    type: Event,
    nullable: false,
    args: {
      after: t.arg.string({ description: describe(StreamEventsRequestSchema.field.afterCursor) }),
      kinds: t.arg({
        description: describe(StreamEventsRequestSchema.field.kinds),
        type: [enumRef(EventKindSchema)],
      }),
    },
    subscribe: (_, { kinds, after }, context) =>
      createLive(context, after, (call, afterCursor) => {
        const asked = { afterCursor, kinds: (kinds ?? []) as EventKind[] };
        return context.core.streamEvents(create(StreamEventsRequestSchema, asked), call);
      }),
    resolve: (delivery) => received(delivery),
  }),
);

const WatchToken = messageType(CreateWatchTokenResponseSchema, {
  name: "WatchToken",
  description: "A token that allows to watch one payment or payout.",
  always: ["expiresAt"],
});

mutation("createWatchToken", WatchToken);

import { create } from "@bufbuild/protobuf";
import type { Call, Core } from "../../core/core.ts";
import type { Event } from "../../gen/payments/v1/event_pb.ts";
import { WatchPaymentRequestSchema } from "../../gen/payments/v1/payment_service_pb.ts";
import { WatchPayoutRequestSchema } from "../../gen/payments/v1/payout_service_pb.ts";
import type { KindName } from "../../model/kinds.ts";
import { createLive, type OpenStream } from "../context.ts";
import { received } from "../live.ts";
import { builder } from "./builder.ts";
import type { ObjectType } from "./connection.ts";

/** Adds `paymentUpdated` or `payoutUpdated`. */
export function addWatch(kind: KindName, type: ObjectType<Event>, description: string): void {
  builder.subscriptionField(`${kind}Updated`, (t) =>
    t.field({
      ...{ description, type, nullable: false },
      args: {
        externalId: t.arg.id({
          description: `The ${kind}'s externalId. It need not exist yet.`,
          required: true,
        }),
        after: t.arg.string({
          description:
            "Go on behind the event with this cursor; `earliest` begins with the oldest event that is " +
            "kept. The header `Last-Event-ID`, which an `EventSource` " +
            "sends by itself when it connects again, goes before it.",
        }),
        untilFinal: t.arg.boolean({
          description:
            "End the stream after the first event with `final: true` of an operation that pays, once no " +
            "call for the externalId is open, and after a `callOutcome` of NOT_DONE or NEEDS_OPERATOR. A " +
            "refund, cancellation or look-up does not end it.",
          defaultValue: false,
        }),
      },
      subscribe: (_, { externalId, untilFinal, after }, context) =>
        createLive(context, after, watchOf(kind, externalId, untilFinal ?? false)),
      resolve: (delivery) => received(delivery),
    }),
  );
}

/** Opens the watch of a payment or payout. Behind `earliest`, which is no cursor, it has all events. */
export function watchOf(kind: KindName, externalId: string, untilFinal: boolean): OpenStream {
  return (core, call, after) => {
    const start = after === "earliest" ? { fromStart: true } : { afterCursor: after };
    return watches[kind](core, { externalId, untilFinal, ...start }, call);
  };
}

interface WatchInit {
  readonly externalId: string;
  readonly untilFinal: boolean;
  readonly afterCursor?: string | undefined;
  readonly fromStart?: boolean;
}

type Watch = (core: Core, init: WatchInit, call: Call) => AsyncIterable<Event>;

const watches: Readonly<Record<KindName, Watch>> = {
  payment: (core, init, call) => core.watchPayment(create(WatchPaymentRequestSchema, init), call),
  payout: (core, init, call) => core.watchPayout(create(WatchPayoutRequestSchema, init), call),
};

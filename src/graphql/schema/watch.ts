import { create } from "@bufbuild/protobuf";
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
      subscribe: (_, { externalId, untilFinal, after }, context) => {
        const start = startInit(context.operation.request.lastEventId ?? after);
        const init = { externalId, untilFinal: untilFinal ?? false, ...start };
        return createLive(context, watches[kind](init));
      },
      resolve: (delivery) => received(delivery),
    }),
  );
}

/** The fields of a request to watch. */
interface WatchInit {
  readonly externalId: string;
  readonly untilFinal: boolean;
  readonly afterCursor?: string | undefined;
  readonly fromStart?: boolean;
}

/** How each kind is watched, by GraphQL and by the plain watches of `/watch`. */
export const watches: Readonly<Record<KindName, (init: WatchInit) => OpenStream>> = {
  payment(init) {
    const request = create(WatchPaymentRequestSchema, init);
    return (core, call) => core.watchPayment(request, call);
  },
  payout(init) {
    const request = create(WatchPayoutRequestSchema, init);
    return (core, call) => core.watchPayout(request, call);
  },
};

/** Where a watch starts, for its request: `earliest` is `fromStart` there, and no cursor. */
export function startInit(after: string | null | undefined) {
  return after === "earliest" ? { fromStart: true } : { afterCursor: after ?? undefined };
}

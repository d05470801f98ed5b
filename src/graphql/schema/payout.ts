import { create } from "@bufbuild/protobuf";
import {
  PayerAccountSchema,
  PayoutSchema,
  PayoutStateSchema,
  RecipientUserSchema,
} from "../../gen/payments/v1/payout_pb.ts";
import {
  ListPayoutsRequestSchema,
  RequestPayoutRequestSchema,
  WatchPayoutRequestSchema,
} from "../../gen/payments/v1/payout_service_pb.ts";
import { builder } from "./builder.ts";
import { pageOf } from "./connection.ts";
import { describe } from "./descriptions.ts";
import { enumRef, knownValue } from "./enums.ts";
import { PayoutEvent } from "./event.ts";
import { connectionField, eventPageArgs, PayoutEventConnection } from "./event-connection.ts";
import { knownConnection, listInit } from "./known-connection.ts";
import { orNull } from "./link.ts";
import { messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";
import { payoutScalars } from "./snapshot.ts";
import { deliveries, received } from "./stream.ts";
import { watchArgs, watchInit } from "./watch-args.ts";

messageType(PayerAccountSchema);
messageType(RecipientUserSchema, { scalars: { email: "EmailAddress", rid: "UUID" } });
const Payout = messageType(PayoutSchema, { omit: ["externalId"], scalars: payoutScalars });

builder.objectFields(Payout, (t) => ({
  externalId: t.string({
    description: describe(PayoutSchema.field.externalId),
    nullable: false,
    resolve: (payout, _, { loaders }) => loaders.externalIdOf(payout),
  }),
  state: t.field({
    description: "Is it paid out?",
    type: enumRef(PayoutStateSchema) as never,
    resolve: (payout, _, { loaders }) =>
      knownValue(PayoutStateSchema, loaders.stateOf(payout)?.state) as never,
  }),
  cursor: t.string({
    description:
      "Give it to `payoutUpdated` as `after` to see all that comes after this state. Null when there " +
      "was no event yet.",
    resolve: (payout, _, { loaders }) => loaders.stateOf(payout)?.cursor || null,
  }),
  outcomeUnknown: t.boolean({
    description:
      "A `requestPayout` for this externalId is out and has no understood answer: the money may have " +
      "moved, whatever the state says. Told of payouts that were read by `payout` or `payouts`, else false.",
    nullable: false,
    resolve: (payout, _, { loaders }) => loaders.flagsOf(payout)?.outcomeUnknown ?? false,
  }),
  needsOperator: t.boolean({
    description:
      "The gateway could not find out in time what became of the payout or of such a call: look at " +
      "the payments service, by hand. Told as `outcomeUnknown` is.",
    nullable: false,
    resolve: (payout, _, { loaders }) => loaders.flagsOf(payout)?.needsOperator ?? false,
  }),
  eventsConnection: t.field({
    ...connectionField("payout"),
    type: PayoutEventConnection,
    args: eventPageArgs(t.arg),
    resolve: (payout, args, { loaders }) =>
      loaders.of(payout).history("payout", loaders.externalIdOf(payout), pageOf(args)),
  }),
}));

builder.queryField("payout", (t) =>
  t.field({
    description:
      "A payout's state, read from the payments service. Null when it knows none; with " +
      "`outcomeUnknown` and no state when a call for it may be on its way there.",
    type: Payout,
    args: { externalId: t.arg.id({ description: "The merchant's own id.", required: true }) },
    resolve: (_, { externalId }, { loaders }) => orNull(loaders.payout(externalId)),
  }),
);

const Payouts = knownConnection("payout", Payout, { name: "Payout", state: PayoutStateSchema });

builder.queryField("payouts", (t) =>
  t.field({
    ...Payouts,
    args: Payouts.args(t.arg),
    resolve: (_, args, { loaders }) =>
      loaders.payouts(create(ListPayoutsRequestSchema, listInit(args))),
  }),
);

mutation("requestPayout", {
  description: "Requests a payout to a card or in cash. `idempotencyKey` makes a repeat safe.",
  request: RequestPayoutRequestSchema,
  success: Payout,
  run: async (core, request, call, loaders) => {
    const { payout, ...state } = await core.requestPayout(request, call);
    return loaders.answered(payout, request.order?.externalId ?? "", state);
  },
});

builder.subscriptionField("payoutUpdated", (t) =>
  t.field({
    description: "The events of a payout, live. It starts and ends as `paymentUpdated` does.",
    type: PayoutEvent,
    nullable: false,
    args: watchArgs(t, "payout"),
    subscribe: (_, args, context) => {
      const request = create(WatchPayoutRequestSchema, watchInit(args, context));
      return deliveries(context, (core, call) => core.watchPayout(request, call));
    },
    resolve: (delivery) => received(delivery),
  }),
);

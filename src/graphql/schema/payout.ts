import { create } from "@bufbuild/protobuf";
import {
  PayoutSchema,
  PayoutStateSchema,
  RecipientUserSchema,
} from "../../gen/payments/v1/payout_pb.ts";
import {
  ListPayoutsRequestSchema,
  RequestPayoutRequestSchema,
} from "../../gen/payments/v1/payout_service_pb.ts";
import { builder } from "./builder.ts";
import { PayoutEvent, PayoutEventConnection } from "./event.ts";
import { addKnownFields, knownConnection, listInit } from "./known-resource.ts";
import { orNull } from "./link.ts";
import { messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";
import { payoutScalars } from "./snapshot.ts";
import { addWatch } from "./watch.ts";

messageType(RecipientUserSchema, { scalars: { email: "EmailAddress", rid: "UUID" } });
const Payout = messageType(PayoutSchema, { omit: ["externalId"], scalars: payoutScalars });

addKnownFields("payout", Payout, {
  externalId: PayoutSchema.field.externalId,
  states: PayoutStateSchema,
  state: "Is it paid out?",
  moneyCall: "A `requestPayout`",
  events: PayoutEventConnection,
});

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

addWatch(
  "payout",
  PayoutEvent,
  "The events of a payout, live. It starts and ends as `paymentUpdated` does.",
);

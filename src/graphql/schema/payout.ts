import {
  PayoutSchema,
  PayoutStateSchema,
  RecipientUserSchema,
} from "../../gen/payments/v1/payout_pb.ts";
import { RequestPayoutRequestSchema } from "../../gen/payments/v1/payout_service_pb.ts";
import { answered } from "../loaders.ts";
import { upstreamCallCost } from "../operation-cost.ts";
import { PayoutEvent, PayoutEventConnection } from "./event.ts";
import { addKnownResource } from "./known-resource.ts";
import { messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";
import { payoutScalars } from "./snapshot.ts";
import { addWatch } from "./watch.ts";

messageType(RecipientUserSchema, { scalars: { email: "EmailAddress", rid: "UUID" } });
const Payout = messageType(PayoutSchema, { omit: ["externalId"], scalars: payoutScalars });

addKnownResource("payout", Payout, {
  externalId: PayoutSchema.field.externalId,
  states: PayoutStateSchema,
  state: "Is it paid out?",
  moneyCall: "A `requestPayout`",
  events: PayoutEventConnection,
  one:
    "A payout's state, read from the payments service. Null when it knows none; with " +
    "`outcomeUnknown` and no state when a call for it may be on its way there.",
  cost: upstreamCallCost,
});

mutation("requestPayout", {
  description: "Requests a payout to a card or in cash. `idempotencyKey` makes a repeat safe.",
  request: RequestPayoutRequestSchema,
  success: Payout,
  run: async (core, request, call) => {
    const { payout, ...state } = await core.requestPayout(request, call);
    return answered(payout, request.order?.externalId ?? "", state);
  },
});

addWatch(
  "payout",
  PayoutEvent,
  "The events of a payout, live. It starts and ends as `paymentUpdated` does.",
);

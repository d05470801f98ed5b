import { PayoutSchema, RecipientUserSchema } from "../../gen/payments/v1/payout_pb.ts";
import {
  GetPayoutResponseSchema,
  ListPayoutsRequestSchema,
  PayoutService,
} from "../../gen/payments/v1/payout_service_pb.ts";
import { noted } from "../loaders.ts";
import { upstreamCallCost } from "../operation-limits.ts";
import { PayoutEvent, payoutScalars } from "./event.ts";
import { addKnownResource } from "./known-resource.ts";
import { messageType } from "./message-type.ts";
import { mutation } from "./mutation.ts";

messageType(RecipientUserSchema, { scalars: { email: "EmailAddress", rid: "UUID" } });
const Payout = messageType(PayoutSchema, { omit: ["externalId"], scalars: payoutScalars });

addKnownResource("payout", Payout, {
  externalId: PayoutSchema.field.externalId,
  answer: GetPayoutResponseSchema,
  filter: ListPayoutsRequestSchema,
  event: PayoutEvent,
  watch: "The events of a payout, live. It starts and ends as `paymentUpdated` does.",
  one:
    "A payout's state, read from the payments service. Null when it knows none; with " +
    "`outcomeUnknown` and no state when a call for it may be on its way there.",
  cost: upstreamCallCost,
});

mutation(PayoutService.method.requestPayout, {
  description: "Requests a payout to a card or in cash. `idempotencyKey` makes a repeat safe.",
  success: Payout,
  run: async (core, request, call) => {
    const { payout, ...state } = await core.requestPayout(request, call);
    return noted(payout, { name: request.order?.externalId ?? "", state });
  },
});

import { clone } from "@bufbuild/protobuf";
import { payoutEntry } from "../events/entry.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import {
  GetPayoutRequestSchema,
  RequestPayoutRequestSchema,
  WatchPayoutRequestSchema,
} from "../gen/payments/v1/payout_service_pb.ts";
import type { Context } from "./context.ts";
import type { Core } from "./core.ts";
import { sendOptions } from "./money-calls.ts";
import { validate } from "./validate.ts";
import { watch } from "./watch.ts";

type PayoutCases = Pick<Core, "requestPayout" | "getPayout" | "watchPayout">;

/** Payouts: request, look up, watch. */
export function payoutCases(context: Context): PayoutCases {
  const { log, moneyCalls } = context;
  return {
    async requestPayout(request, call) {
      validate(RequestPayoutRequestSchema, request);
      const { account } = call.caller;
      const sent = clone(RequestPayoutRequestSchema, request);
      const externalId = sent.order?.externalId ?? "";
      if (sent.order) sent.order.callbackUrl ??= context.callbackUrl(account, "payouts");
      return moneyCalls.run({
        call,
        method: "RequestPayout",
        kind: EventKind.PAYOUT,
        answerSchema: PayoutSchema,
        externalId,
        schema: RequestPayoutRequestSchema,
        request,
        send: (options) => context.account(account).upstream.requestPayout(sent, options),
        entry: (payout) => payoutEntry(payout, { source: EventSource.RESPONSE, externalId }),
      });
    },

    async getPayout(request, call) {
      validate(GetPayoutRequestSchema, request);
      return context.account(call.caller.account).upstream.getPayout(request, sendOptions(call));
    },

    async *watchPayout(request, call) {
      validate(WatchPayoutRequestSchema, request);
      const { externalId, afterCursor, untilFinal } = request;
      yield* watch(
        { log, call, drain: context.drain },
        { kind: EventKind.PAYOUT, externalId, after: afterCursor, untilFinal },
      );
    },
  };
}

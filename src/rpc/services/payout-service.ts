import type { ServiceImpl } from "@connectrpc/connect";
import type { Call, Core } from "../../core/core.ts";
import type { PayoutService } from "../../gen/payments/v1/payout_service_pb.ts";
import { callOf } from "../gated-call.ts";
import { eventStream } from "./event-stream.ts";

/** Implements the contract's PayoutService: each method is one use case of the core. */
export function payoutService(core: Core): ServiceImpl<typeof PayoutService> {
  return {
    async requestPayout(request, context) {
      const call = callOf(context);
      const payout = await core.requestPayout(request, call);
      const { externalId = "" } = request.order ?? {};
      const { state, cursor } = await core.payoutStateAfter(payout, externalId, call);
      return { payout, state, cursor };
    },
    getPayout: (request, context) => core.getPayout(request, callOf(context)),
    watchPayout(request, context) {
      const open = (call: Call) => core.watchPayout(request, call);
      return eventStream(open, context, request);
    },
  };
}

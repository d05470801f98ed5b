import { clone, create } from "@bufbuild/protobuf";
import { type ErrorCode, GatewayError } from "../errors.ts";
import { currentEvent } from "../events/current.ts";
import { payoutEntry } from "../events/entry.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { type Payout, PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import {
  type GetPayoutRequest,
  GetPayoutRequestSchema,
  type GetPayoutResponse,
  GetPayoutResponseSchema,
  RequestPayoutRequestSchema,
  WatchPayoutRequestSchema,
} from "../gen/payments/v1/payout_service_pb.ts";
import { doubtsOf, type Standing, standingsOf } from "../intents/settle.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { learn } from "./learn.ts";
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
      return await lookUp(context, request, call);
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

/** A payout as the service tells it, and what is in doubt of the calls for it. */
async function lookUp(
  context: Context,
  request: GetPayoutRequest,
  call: Call,
): Promise<GetPayoutResponse> {
  const { externalId } = request;
  const { account } = call.caller;
  const standing = () => standingsOf(context, account, EventKind.PAYOUT, externalId);
  let payout: Payout;
  try {
    payout = await context.account(account).upstream.getPayout(request, sendOptions(call));
  } catch (error) {
    if (!isError(error, "NOT_FOUND")) throw error;
    // Not found is not unmade: a call may be on its way there, or only just have arrived.
    const { standings, snapshot } = await standing();
    const event = snapshot && currentEvent(snapshot);
    if (!event && standings.length === 0) throw error;
    const known = event?.resource.case === "payout" ? event.resource.value : undefined;
    return answer(standings, known);
  }
  try {
    let { standings } = await standing();
    if (doubtsOf(standings).outcomeUnknown) {
      // It may be what became of the call that is in doubt.
      const source = EventSource.RECONCILIATION;
      await learn(context, account, externalId, payoutEntry(payout, { source, externalId }));
      ({ standings } = await standing());
    }
    return answer(standings, payout);
  } catch (error) {
    if (!isError(error, "UNAVAILABLE")) throw error;
    // The store is away: the service's word stands by itself.
    return answer([], payout);
  }
}

function answer(standings: readonly Standing[], payout: Payout | undefined): GetPayoutResponse {
  const { outcomeUnknown, needsOperator } = doubtsOf(standings);
  return create(GetPayoutResponseSchema, {
    ...(payout && { payout }),
    outcomeUnknown: outcomeUnknown || !payout,
    needsOperator,
  });
}

function isError(error: unknown, code: ErrorCode): boolean {
  return error instanceof GatewayError && error.code === code;
}

import { create } from "@bufbuild/protobuf";
import { type ErrorCode, GatewayError } from "../errors.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { type Payout, PayoutSchema, type PayoutState } from "../gen/payments/v1/payout_pb.ts";
import {
  type GetPayoutRequest,
  type GetPayoutResponse,
  GetPayoutResponseSchema,
} from "../gen/payments/v1/payout_service_pb.ts";
import { currentState } from "../ledger/current.ts";
import { payoutEntry } from "../ledger/entry.ts";
import { factsOfEntry } from "../ledger/facts.ts";
import { type Known, nothingKnown } from "../ledger/intents.ts";
import type { Entry } from "../ledger/log.ts";
import { outcomeFlags, standingOf } from "../ledger/open-calls.ts";
import { stateOfPayout, statesAfter } from "../ledger/payment-state.ts";
import type { Context } from "./context.ts";
import type { Call, Core } from "./core.ts";
import { listKnown } from "./list-known.ts";
import { moneyAnswer } from "./money-answer.ts";
import { sendOptions } from "./money-calls.ts";
import { watch } from "./watch.ts";

/** Payouts: request, look up, watch. */
export function payoutCases(context: Context) {
  return {
    async requestPayout(request, call) {
      const { order } = request;
      const externalId = order?.externalId ?? "";
      const callbackUrl = order?.callbackUrl ?? context.callbackUrl(call.caller.account, "payouts");
      const sent = order ? { ...request, order: { ...order, callbackUrl } } : request;
      const answered = await moneyAnswer(context, {
        ...{ call, method: "RequestPayout", externalId, request, answerSchema: PayoutSchema },
        send: (options) => context.upstreamOf(call).requestPayout(sent, options),
        entry: (payout) => payoutEntry(payout, { source: EventSource.RESPONSE, externalId }),
      });
      const { answer: payout, payoutState: state, cursor } = answered;
      return { payout, state, cursor };
    },

    getPayout: (request, call) => lookUp(context, request, call),

    listPayouts(request, call) {
      const stateOf = (state: number) => stateOfPayout(state as PayoutState);
      return listKnown(context, request, call, { kind: EventKind.PAYOUT, stateOf, answerOf });
    },

    watchPayout: (request, call) => watch(context, call, EventKind.PAYOUT, request),
  } satisfies Partial<Core>;
}

/** What the gateway knows of a payout; undefined if nothing is known of it and no call is out. */
function answerOf(known: Known): GetPayoutResponse | undefined {
  return standingOf(EventKind.PAYOUT, known) && answer(known, payoutIn(known));
}

/** The payout of the current state. */
function payoutIn(known: Known): Payout | undefined {
  const resource = currentState(known)?.event.resource;
  return resource?.case === "payout" ? resource.value : undefined;
}

/** A payout as the service reports it, and whether a call for it is open. */
async function lookUp(
  context: Context,
  request: GetPayoutRequest,
  call: Call,
): Promise<GetPayoutResponse> {
  const { externalId } = request;
  const { account } = call.caller;
  const { ledger, report } = context;
  const look = () => ledger.known(account, EventKind.PAYOUT, externalId);
  let payout: Payout;
  try {
    payout = await context.upstreamOf(call).getPayout(request, sendOptions(call));
  } catch (error) {
    if (!isError(error, "NOT_FOUND")) throw error;
    // NOT_FOUND does not mean that no payout was made: a call may still be on its way to the
    // service, or have only just arrived.
    const known = answerOf(await look());
    if (!known) throw error;
    return known;
  }
  const source = EventSource.RECONCILIATION;
  const newEntry = payoutEntry(payout, { source, externalId });
  try {
    let known = await look();
    const { outcomeUnknown } = outcomeFlags(known);
    if (newEntry && (outcomeUnknown || isBehind(known, newEntry))) {
      // Others see it too then, and it may be the outcome of the open call: look again.
      await ledger.append(account, newEntry).catch((error: unknown) => {
        report("unrecorded", { account, externalId, error });
      });
      known = await look();
    }
    // An answer that names no payout says less than the log.
    const told = newEntry ? payout : (payoutIn(known) ?? payout);
    return answer(known, told, newEntry);
  } catch (error) {
    if (!isError(error, "UNAVAILABLE")) throw error;
    // The service's report is enough by itself, except a failure: a later call may be open.
    const isOpen = newEntry?.status === "failure";
    return answer(nothingKnown, payout, newEntry, isOpen);
  }
}

/** Whether the log knows the payout, but not that it has come so far. */
function isBehind({ operations }: Known, { subjectId, rank }: Entry): boolean {
  const known = operations.find((one) => one.subjectId === subjectId);
  return known !== undefined && known.rank < rank;
}

/**
 * @param newEntry what the service has just reported; the log may not have it yet
 * @param isOpen whether a call may be open that is not known
 */
function answer(
  known: Known,
  payout: Payout | undefined,
  newEntry?: Entry,
  isOpen = false,
): GetPayoutResponse {
  const { outcomeUnknown, needsOperator } = outcomeFlags(known);
  const isUnknown = outcomeUnknown || isOpen || !payout;
  const { operations } = factsOfEntry(newEntry);
  const facts = { ...known, operations: [...known.operations, ...operations] };
  return create(GetPayoutResponseSchema, {
    ...(payout && { payout }),
    outcomeUnknown: isUnknown,
    needsOperator,
    state: statesAfter(EventKind.PAYOUT, facts, isUnknown).payoutState,
    cursor: known.cursor,
  });
}

function isError(error: unknown, code: ErrorCode): boolean {
  return error instanceof GatewayError && error.code === code;
}

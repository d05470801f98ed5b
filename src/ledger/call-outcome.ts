import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  CallOutcome,
  CallOutcomeSchema,
  type Event,
  EventSchema,
  EventSource,
} from "../gen/payments/v1/event_pb.ts";
import { newestOf } from "./facts.ts";
import type { Intent } from "./intents.ts";
import type { Entry, Fact, Snapshot } from "./log.ts";

/**
 * The log entry for the outcome of a call whose answer was lost. The call has a state of its own,
 * beside those of payments and payouts. A known outcome has a higher rank than an unknown one, so
 * it never becomes unknown again.
 * @param isShown whether the log already has what the call made. Then a hold noted for the call
 * moves to those operations (`takeHold`). Until then the note stays: it alone marks the coming
 * payment as held.
 */
export function callOutcomeEntry(
  call: Pick<Intent, "id" | "kind" | "externalId">,
  outcome: CallOutcome,
  isShown = false,
): Entry {
  const { kind } = call;
  const source =
    outcome === CallOutcome.UNKNOWN ? EventSource.RESPONSE : EventSource.RECONCILIATION;
  const status = (CallOutcomeSchema.value[outcome]?.name ?? "").toLowerCase();
  const identity = JSON.stringify([kind, callOperation, call.id, status]);
  return {
    event: create(EventSchema, {
      kind,
      externalId: call.externalId,
      source,
      callOutcome: outcome,
    }),
    kind,
    source,
    externalId: call.externalId,
    subjectId: call.id,
    operation: callOperation,
    operationId: "",
    rank: open.has(outcome) ? 1 : 2,
    status,
    ...(outcome === CallOutcome.NOT_DONE && { call: call.id }),
    ...(isShown && { call: call.id, held: true }),
    identity: createHash("sha256").update(identity).digest("base64url"),
  };
}

/** Whether a state describes a call rather than a payment or payout. */
export function isCall({ operation }: Pick<Fact, "operation">): boolean {
  return operation === callOperation;
}

/** The latest event that reports a call as UNKNOWN or NEEDS_OPERATOR, if such a call is left. */
export function unknownOutcome({ operations }: Snapshot): Event | undefined {
  const calls = operations.filter((one) => isCall(one) && open.has(one.event.callOutcome));
  return newestOf(calls)?.event;
}

const callOperation = "call";

const open: ReadonlySet<CallOutcome> = new Set([CallOutcome.UNKNOWN, CallOutcome.NEEDS_OPERATOR]);

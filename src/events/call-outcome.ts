import { createHash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import {
  CallOutcome,
  CallOutcomeSchema,
  type Event,
  EventSchema,
  EventSource,
} from "../gen/payments/v1/event_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { Entry, OperationState, Snapshot } from "./log.ts";

/** A call that moves money, as the log tells of it. */
export interface LostCall {
  readonly id: string;
  readonly kind: Kind;
  readonly externalId: string;
}

/**
 * What is told of a call whose answer was lost. It has a state of its own beside those of payments
 * and payouts, and once its outcome is known it does not become unknown again.
 * @param isShown what it made is in the log: its note as a hold goes over to that. Until then the note
 * stays, since what comes is a hold by it alone.
 */
export function callOutcomeEntry(call: LostCall, outcome: CallOutcome, isShown = false): Entry {
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

/** Whether a state is that of a call, not of a payment or payout. */
export function isCall({ operation }: OperationState): boolean {
  return operation === callOperation;
}

/** What the log tells of a call: of rank 2 once its outcome is known. */
export function stateOfCall(
  snapshot: Snapshot | undefined,
  id: string,
): OperationState | undefined {
  return snapshot?.states.find((state) => isCall(state) && state.subjectId === id);
}

/** The latest event that says that a call's outcome is not known, if that is so still. */
export function unknownOutcome({ states }: Snapshot): Event | undefined {
  return states.findLast((state) => isCall(state) && open.has(state.event.callOutcome))?.event;
}

const callOperation = "call";

const open: ReadonlySet<CallOutcome> = new Set([CallOutcome.UNKNOWN, CallOutcome.NEEDS_OPERATOR]);

import type { Kind } from "../model/kinds.ts";
import { evidenceOf, isNamed, isOperationOf } from "./evidence.ts";
import { type Evidence, type Intent, isUnknown, type OpenCall } from "./intents.ts";
import type { Fact } from "./log.ts";
import { stateAfter } from "./payment-state.ts";

/** The flags that callers see about the open calls for an external_id. */
export function outcomeFlags(known: Evidence): { outcomeUnknown: boolean; needsOperator: boolean } {
  const unexplained = known.calls.filter((call) => !evidenceOf(call, known));
  return {
    // An answer that could not be written to the log counts like one that never came.
    outcomeUnknown: unexplained.some((call) => !isRecorded(call, known)),
    needsOperator: unexplained.some(({ needsOperator }) => needsOperator),
  };
}

/** Whether the log has the operation that the call made: its answer was written there. */
function isRecorded(call: OpenCall, { operations }: Evidence): boolean {
  const { method, subjectId } = call;
  // A confirmation has the id of the payment that it confirms.
  const isOfIt = (state: Fact) => state.subjectId === subjectId && isOperationOf(method, state);
  return isNamed(call) && operations.some(isOfIt);
}

/**
 * What callers see of an external_id beside its payment or payout, the state as `Event.state` has it.
 * Undefined if nothing is known of the external_id and no call is out.
 */
export function standingOf(kind: Kind, known: Evidence) {
  const flags = outcomeFlags(known);
  if (!flags.outcomeUnknown && known.operations.length === 0) return undefined;
  return { ...flags, state: stateAfter(kind, known, flags.outcomeUnknown) };
}

/** How many intents are considered. */
export const maxInspected = 1_000;

/**
 * Calls of unknown or pending outcome, the most urgent first: given up, unknown, pending. Each group has
 * its oldest first.
 */
export function unsettledOf(all: readonly Intent[], nowMs: number): Intent[] {
  return all
    .filter((intent) => intent.state === "pending" || isUnknown(intent, nowMs))
    .sort((a, b) => urgency(b) - urgency(a) || a.startedAtMs - b.startedAtMs);
}

function urgency({ needsOperator, state }: Intent): number {
  if (needsOperator) return 2;
  return state === "pending" ? 0 : 1;
}

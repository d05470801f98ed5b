import type { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { isCall } from "./call-outcome.ts";
import { type Evidence, evidenceOf, isNamed, isOperationOf, type ShownEnding } from "./evidence.ts";
import { noFacts } from "./facts.ts";
import { type Intent, isUnknown, type Unsettled } from "./intents.ts";
import type { Facts, PlacedFact, Snapshot } from "./log.ts";
import { stateAfter } from "./payment-state.ts";

/** A call that is open, with what the log says about it. */
export interface ExplainedCall {
  readonly intent: Intent;
  readonly evidence: ShownEnding | undefined;
  /** The log has the operation that the call made: its answer was written there. */
  readonly isRecorded: boolean;
}

/** All calls for an external_id that are open, and what the log says about it. */
export interface OpenCalls<Of extends Facts<PlacedFact> = Snapshot> {
  readonly openCalls: readonly ExplainedCall[];
  /** Without the calls whose outcome the events show: nothing more is expected of these. */
  readonly snapshot: Of | undefined;
}

/** The open calls for an external_id, with what else is known of it says about them. */
export function explained<Of extends Facts<PlacedFact>>({
  intents,
  snapshot,
  marks,
}: Omit<Evidence, "facts"> & { readonly snapshot: Of | undefined }): OpenCalls<Of> {
  const facts = snapshot ?? noFacts;
  const openCalls = intents.map((intent) => ({
    intent,
    evidence: evidenceOf(intent, { intents, facts, marks }),
    isRecorded:
      isNamed(intent) &&
      facts.operations.some(
        // A confirmation has the id of the payment that it confirms.
        (state) => state.subjectId === intent.subjectId && isOperationOf(intent.method, state),
      ),
  }));
  return { openCalls, snapshot: snapshot && withoutExplained(snapshot, openCalls) };
}

function withoutExplained<Of extends Facts>(snapshot: Of, openCalls: readonly ExplainedCall[]): Of {
  const explained = new Set(
    openCalls.filter(({ evidence }) => evidence).map(({ intent }) => intent.id),
  );
  if (explained.size === 0) return snapshot;
  const operations = snapshot.operations.filter(({ subjectId }) => !explained.has(subjectId));
  return { ...snapshot, operations };
}

/** The flags that callers see about the open calls for an external_id. */
export function outcomeFlags(openCalls: readonly ExplainedCall[]): {
  outcomeUnknown: boolean;
  needsOperator: boolean;
} {
  const unexplained = openCalls.filter(({ evidence }) => !evidence);
  return {
    // An answer that could not be written to the log counts like one that never came.
    outcomeUnknown: unexplained.some(({ isRecorded }) => !isRecorded),
    needsOperator: unexplained.some(({ intent }) => intent.needsOperator),
  };
}

/** What callers see of an external_id beside its payment or payout. */
export interface Standing extends ReturnType<typeof outcomeFlags> {
  /** As `Event.state` has it. */
  readonly state: PaymentState;
}

/** Undefined if nothing is known of the external_id and no call is out. */
export function standingOf(
  kind: Kind,
  { openCalls, snapshot }: OpenCalls<Facts<PlacedFact>>,
): Standing | undefined {
  const flags = outcomeFlags(openCalls);
  const isKnown = flags.outcomeUnknown || snapshot?.operations.some((state) => !isCall(state));
  if (!isKnown) return undefined;
  return { ...flags, state: stateAfter(kind, snapshot ?? noFacts, flags.outcomeUnknown) };
}

/** How many intents are considered, of those that are due first and of those given up last each. */
export const maxInspected = 1_000;

/**
 * Intents of unknown or pending outcome, the most urgent first: given up, unknown, pending. Each
 * group has its oldest first.
 */
export function unsettledOf(all: readonly Intent[], limit: number, now: number): Unsettled {
  const intents = all
    .filter((intent) => intent.state === "pending" || isUnknown(intent, now))
    .sort((a, b) => urgency(b) - urgency(a) || a.startedAtMs - b.startedAtMs);
  return { intents: intents.slice(0, limit), total: intents.length };
}

function urgency({ needsOperator, state }: Intent): number {
  if (needsOperator) return 2;
  return state === "pending" ? 0 : 1;
}

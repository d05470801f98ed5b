import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallOutcome, type Event } from "../gen/payments/v1/event_pb.ts";
import { outcomeEvent } from "./entries.ts";
import { evidenceOf } from "./evidence.ts";
import type { Known } from "./intents.ts";
import type { OperationState } from "./log.ts";
import { payingOperations, succeeded } from "./payment-state.ts";

/**
 * The operation whose event shows the current state of a payment or payout: the latest success if
 * there is one, else the attempt that began last. Operations that pay come first: a refund,
 * cancellation or look-up is shown only while nothing else is known.
 */
export function currentState({
  operations,
}: Pick<Known, "operations">): OperationState | undefined {
  const paying = operations.filter(({ operation }) => payingOperations.has(operation));
  const eligible = paying.length > 0 ? paying : operations;
  return latest(eligible.filter(succeeded), "place") ?? latest(eligible, "since");
}

function latest(facts: readonly OperationState[], by: "place" | "since") {
  return facts.toSorted((a, b) => (a[by] < b[by] ? -1 : 1)).at(-1);
}

/**
 * The first event of a watch: the current state. But if no success is known and a call is lost, it
 * says so: the failure of an earlier attempt would show as failed what may have been paid.
 */
export function firstEvent(known: Known): Event | undefined {
  const { calls, cursor, updatedMs } = known;
  const current = currentState(known);
  const isPaid = current && succeeded(current) && payingOperations.has(current.operation);
  const lost = calls.findLast((one) => one.state === "unknown" && !evidenceOf(one, known));
  if (cursor === "" || isPaid || !lost) return current?.event;
  const outcome = lost.needsOperator ? CallOutcome.NEEDS_OPERATOR : CallOutcome.UNKNOWN;
  return { ...outcomeEvent(lost, outcome), receivedAt: timestampFromMs(updatedMs) };
}

import type { Event } from "../gen/payments/v1/event_pb.ts";
import { isCall, unknownOutcome } from "./call-outcome.ts";
import { newestOf } from "./facts.ts";
import type { OperationState, Snapshot } from "./log.ts";
import { payingOperations } from "./payment-state.ts";

/**
 * The operation whose event shows the current state of a payment or payout: the latest success if
 * there is one, else the attempt that began last. Operations that pay come first: a refund,
 * cancellation or look-up is shown only while nothing else is known.
 */
export function currentState({ operations }: Snapshot): OperationState | undefined {
  const resources = operations.filter((state) => !isCall(state));
  const paying = resources.filter(({ operation }) => payingOperations.has(operation));
  const eligible = paying.length > 0 ? paying : resources;
  const successes = eligible.filter(({ status }) => status === "success");
  return newestOf(successes) ?? newestOf(eligible, "since");
}

/**
 * The first event of a watch: the current state. But if no success is known and a call's outcome is
 * unknown, it is the event that reports this: the failure of an earlier attempt would show as
 * failed what may have been paid.
 */
export function firstEvent(snapshot: Snapshot): Event | undefined {
  const succeeded = snapshot.operations.some(
    ({ operation, status }) => payingOperations.has(operation) && status === "success",
  );
  return (succeeded ? undefined : unknownOutcome(snapshot)) ?? currentState(snapshot)?.event;
}

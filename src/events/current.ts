import type { Event } from "../gen/payments/v1/event_pb.ts";
import { isCall, unknownOutcome } from "./call-outcome.ts";
import type { OperationState, Snapshot } from "./log.ts";
import { payingOperations } from "./payment-state.ts";

/**
 * Which event tells the current state of a payment or payout: the latest
 * success if there is one, else the attempt that began last. Of a payment, what pays counts: a
 * refund, cancellation or look-up shows only while nothing else is known.
 */
export function currentEvent({ states }: Snapshot): Event | undefined {
  const resources = states.filter((state) => !isCall(state));
  const paying = resources.filter(({ operation }) => payingOperations.has(operation));
  const eligible = paying.length > 0 ? paying : resources;
  const current =
    eligible.findLast(({ status }) => status === "success") ?? eligible.reduce(later, eligible[0]);
  return current?.event;
}

/**
 * The event that a watch begins with: the current state, unless that is no success and the outcome
 * of a call is unknown. To begin with the failure of an earlier attempt would show as failed what
 * may have been paid.
 */
export function firstEvent(snapshot: Snapshot): Event | undefined {
  const succeeded = snapshot.states.some(
    ({ operation, status }) => payingOperations.has(operation) && status === "success",
  );
  return (succeeded ? undefined : unknownOutcome(snapshot)) ?? currentEvent(snapshot);
}

function later(
  latest: OperationState | undefined,
  state: OperationState,
): OperationState | undefined {
  return latest && latest.since > state.since ? latest : state;
}

import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { OperationState, Snapshot } from "./log.ts";

/**
 * Which event tells the current state of a payment or payout (contract, section 5): the latest
 * success if there is one, else the attempt that began last. Of a payment, what pays counts: a
 * refund, cancellation or look-up shows only while nothing else is known.
 */
export function currentEvent({ states }: Snapshot): Event | undefined {
  const paying = states.filter(({ operation }) => payingOperations.has(operation));
  const eligible = paying.length > 0 ? paying : states;
  const current =
    eligible.findLast(({ status }) => status === "success") ?? eligible.reduce(later, eligible[0]);
  return current?.event;
}

const payingOperations: ReadonlySet<string> = new Set([
  "payment",
  "recurrent",
  "confirm",
  "payout",
]);

function later(
  latest: OperationState | undefined,
  state: OperationState,
): OperationState | undefined {
  return latest && latest.since > state.since ? latest : state;
}

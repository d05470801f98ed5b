import type { Event } from "../gen/payments/v1/event_pb.ts";
import type { Cursor, Entry, OperationState } from "./log.ts";

/** What an entry means to the state of its operation. */
export interface Merge {
  /** The entry becomes the state. */
  readonly replaces: boolean;
  /** The entry would take the operation back: its event comes late. */
  readonly late: boolean;
  /** One operation has come to two different ends. */
  readonly conflict: boolean;
}

/**
 * Holds an entry against the state of its operation: rank never goes back, of
 * equal ranks the newer one stands. Of two different ends success stands, whichever came first: to
 * show as failed what was paid would have it paid twice. Two ends with different operation_ids (two
 * partial refunds, say) are two things that happened, no conflict, and neither makes the other late.
 */
export function merge(held: Step | undefined, entry: Step): Merge {
  if (!held) return { replaces: true, late: false, conflict: false };
  const another =
    held.operationId !== "" && entry.operationId !== "" && held.operationId !== entry.operationId;
  if (entry.rank !== held.rank) {
    const lower = entry.rank < held.rank;
    return { replaces: !lower, late: lower && !another, conflict: false };
  }
  if (entry.rank < 2 || entry.status === held.status) {
    return { replaces: true, late: false, conflict: false };
  }
  return { replaces: entry.status === "success", late: false, conflict: !another };
}

/** What is told apart of an operation's events. */
type Step = Pick<OperationState, "operationId" | "rank" | "status">;

/** The state that an event makes; `since` stays that of the operation's first event. */
export function stateOf(entry: Entry, event: Event, since: Cursor): OperationState {
  const { operation, subjectId, operationId, rank, status } = entry;
  return { operation, subjectId, operationId, rank, status, since, event };
}

/** Which of an external id's states an entry belongs to: refunds of one payment are told apart. */
export function stateKey({
  subjectId,
  operation,
  operationId,
}: Pick<Entry, "subjectId" | "operation" | "operationId">): string {
  const apart = operation === "refund" && operationId !== "";
  return JSON.stringify([subjectId, operation, ...(apart ? [operationId] : [])]);
}

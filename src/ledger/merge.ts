import type { Entry, Fact } from "./log.ts";

/** How an entry affects the state of its operation. */
export interface Merge {
  /** The entry becomes the state. */
  readonly replaces: boolean;
  /** The entry has a lower rank than the state, and no other operation_id: it arrived late. */
  readonly late: boolean;
  /** The operation has two different final states. */
  readonly conflict: boolean;
}

/**
 * Compares an entry with the state of its operation. Rank never goes back; of equal ranks the newer
 * entry wins. Of two different final states success wins, whichever came first: a payment that is
 * paid but shown as failed would be paid again. Final states with different operation_ids (two
 * partial refunds, say) are separate operations: they do not conflict, and neither makes the other
 * late. A status that is not known is never late: it may follow any state.
 */
export function merge(state: Step | undefined, entry: Step): Merge {
  if (!state) return { replaces: true, late: false, conflict: false };
  const another =
    state.operationId !== "" && entry.operationId !== "" && state.operationId !== entry.operationId;
  if (entry.rank !== state.rank) {
    const lower = entry.rank < state.rank;
    const late = lower && !another && entry.rank >= 0;
    return { replaces: !lower, late, conflict: false };
  }
  if (entry.rank < 2 || entry.status === state.status) {
    return { replaces: true, late: false, conflict: false };
  }
  return { replaces: entry.status === "success", late: false, conflict: !another };
}

/** What `merge` compares of a state and an entry. */
type Step = Pick<Fact, "operationId" | "rank" | "status">;

/**
 * Whether these are of one operation of an external id. A payment has several refunds, and several
 * confirmations that each move a part of what is held: their operation_ids tell them apart. The answer
 * to a confirmation may lack the operation_id that its callback has.
 */
export function isSameOperation(one: OperationId, other: OperationId): boolean {
  if (one.subjectId !== other.subjectId || one.operation !== other.operation) return false;
  if (one.operationId === other.operationId) return true;
  if (one.operation === "confirm") return isUnnamed(one) || isUnnamed(other);
  return one.operation !== "refund";
}

function isUnnamed({ operationId, isAttempt }: OperationId): boolean {
  return operationId === "" || isAttempt === true;
}

type OperationId = Pick<Entry, "subjectId" | "operation" | "operationId" | "isAttempt">;

import { nothingKnown } from "./intents.ts";
import type { Entry, Fact, Facts } from "./log.ts";
import type { PaymentRecord, StoredOperation } from "./record.ts";

/** How many failures an external_id keeps: the newest ones. */
export const maxFailures = 100;

/** What an entry says of its operation. */
export function factOf(entry: Entry): Fact {
  const { event, kind, source, externalId, call, digest, identity, ...fact } = entry;
  return fact;
}

/** The facts of an answer that the log may not have. */
export function factsOfEntry(entry: Entry | undefined): Facts {
  return entry ? { ...nothingKnown, operations: [entry] } : nothingKnown;
}

/**
 * Compares an entry with the state of its operation. Rank never goes back; of equal ranks the newer
 * entry wins. Of two different final states success wins, whichever came first: a payment that is
 * paid but shown as failed would be paid again. Final states with different operation_ids (two
 * partial refunds, say) are separate operations: they do not conflict, and neither makes the other
 * late. A status that is not known is never late: it may follow any state.
 * @returns `replaces`: the entry becomes the state; `late`: it has a lower rank, and no other
 * operation_id; `conflict`: the operation has two different final states
 */
export function merge(state: Step | undefined, { operationId, rank, status }: Step) {
  if (!state) return { replaces: true, late: false, conflict: false };
  const isAnother =
    state.operationId !== "" && operationId !== "" && state.operationId !== operationId;
  const isLower = rank < state.rank;
  const isOtherEnd = !isLower && state.rank === 2 && status !== state.status;
  return {
    replaces: !isLower && (!isOtherEnd || status === "success"),
    late: isLower && !isAnother && rank >= 0,
    conflict: isOtherEnd && !isAnother,
  };
}

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

type OperationId = Pick<Fact, "subjectId" | "operation" | "operationId" | "isAttempt">;

/** Replaces what is known of an operation, but keeps amount, currency and `held` if it has none. */
export function replaced(known: StoredOperation, fact: Fact, place: string): StoredOperation {
  const { n, since } = known;
  const { amount = known.amount, currency = known.currency, held = known.held } = fact;
  return { ...fact, amount, currency, held, n, since, place };
}

/** Removes the failures that are too many, in place. @returns what was removed */
export function foldIn(kept: PaymentRecord): StoredOperation[] {
  if (kept.operations.length <= maxFailures) return [];
  const failures = kept.operations.filter(({ rank, status }) => rank === 2 && status !== "success");
  const gone = failures.slice(0, Math.max(failures.length - maxFailures, 0));
  if (gone.length > 0) kept.operations = kept.operations.filter((one) => !gone.includes(one));
  kept.folded += gone.length;
  return gone;
}

/**
 * Applies what an answer says about a hold, in place: it removes the note of its call, and marks its
 * payment as held or not, if that became known before the answer.
 * @param known what is known of the entry's operation
 * @returns whether this may change the state of the external_id. Then the answer is stored as an
 * event, even if it repeats what is known or comes late.
 */
export function takeHold(
  kept: PaymentRecord,
  known: StoredOperation | undefined,
  { held, call }: Entry,
): boolean {
  const wasNoted = kept.holds.length > 0;
  if (call !== undefined) dropHold(kept, call);
  if (!known || held === undefined || known.held !== undefined) return false;
  known.held = held;
  return held !== wasNoted;
}

/** Removes the note that a call makes a hold. @returns whether there was one */
export function dropHold(kept: PaymentRecord, call: string): boolean {
  const before = kept.holds.length;
  kept.holds = kept.holds.filter((other) => other !== call);
  return kept.holds.length < before;
}

import type { Entry, Fact, Facts, PlacedFact } from "./log.ts";
import type { PaymentRecord, StoredOperation } from "./record.ts";

export const noFacts: Facts<never> = { operations: [], held: false, folded: 0 };

/** How many failures an external_id keeps: the newest ones. */
export const maxFailures = 100;

/** What an entry says of its operation. */
export function factOf(entry: Entry, at = "0"): Fact {
  const { subjectId, operation, operationId, rank, status } = entry;
  const { isAttempt, statusCode, amount, currency, held, words = [] } = entry;
  return {
    ...{ subjectId, operation, operationId, rank, status, at },
    ...(isAttempt && { isAttempt }),
    ...(statusCode && { statusCode }),
    ...(amount && { amount }),
    ...(currency && { currency }),
    ...(held !== undefined && { held }),
    ...(words.length > 0 && { words }),
  };
}

/** The facts of an answer that the log may not have. */
export function factsOfEntry(entry: Entry | undefined): Facts {
  return entry ? { ...noFacts, operations: [factOf(entry)] } : noFacts;
}

/** Replaces what is known of an operation, but keeps amount, currency and `held` if it has none. */
export function replaced(
  { n, since, amount, currency, held }: StoredOperation,
  fact: Fact,
  place: string,
): StoredOperation {
  return {
    ...{ n, ...(amount && { amount }), ...(currency && { currency }) },
    ...(held !== undefined && { held }),
    ...{ ...fact, since, place },
  };
}

/** Removes the failures that are too many, in place. @returns what was removed */
export function foldIn(kept: PaymentRecord): StoredOperation[] {
  if (kept.operations.length <= maxFailures) return [];
  const failures = kept.operations.filter(isFailure);
  const gone = failures.slice(0, Math.max(failures.length - maxFailures, 0));
  if (gone.length > 0) kept.operations = kept.operations.filter((one) => !gone.includes(one));
  kept.folded += gone.length;
  return gone;
}

/**
 * Applies what an entry says about a hold, in place.
 * - An entry with a call removes the note of that call.
 * - An answer marks its payment as held or not, if the payment became known before the answer.
 * - A call that was settled without its answer made one of the payments that are known by now. If
 *   it was noted and its entry says `held`, those that are not marked yet become held. Later
 *   payments do not.
 *
 * @param known what is known of the entry's operation
 * @returns whether this may change the state of the external_id. Then the answer is stored as an
 * event, even if it repeats what is known or comes late.
 */
export function takeHold(
  kept: PaymentRecord,
  known: StoredOperation | undefined,
  { operation, held, call }: Entry,
): boolean {
  const wasNoted = kept.holds.length > 0;
  const isOwn = call !== undefined && kept.holds.includes(call);
  if (isOwn) kept.holds = kept.holds.filter((other) => other !== call);
  if (operation === "call") {
    if (isOwn && held) for (const one of kept.operations) one.held ??= true;
    return false;
  }
  if (!known || held === undefined || known.held !== undefined) return false;
  known.held = held;
  return held !== wasNoted;
}

/** The fact whose event is the last; by `since`, the one whose operation began last. */
export function newestOf<Of extends PlacedFact>(
  facts: readonly Of[],
  by: "place" | "since" = "place",
): Of | undefined {
  let newest = facts[0];
  for (const fact of facts) if (newest && fact[by] > newest[by]) newest = fact;
  return newest;
}

/** Whether it is a final state but no success: of an attempt, a refund, or a settled call. */
function isFailure({ rank, status }: Fact): boolean {
  return rank === 2 && status !== "success";
}

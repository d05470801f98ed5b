import type { Entry, Fact, Facts, Rank, Words } from "./log.ts";
import { stateKey } from "./merge.ts";
import type { PaymentRecord, StoredFact } from "./record.ts";

export const noFacts: Facts = { operations: [], held: false, folded: 0 };

/** How many failures an external_id keeps: the newest ones. */
export const maxFailures = 100;

/** The stored fact of an entry. */
export function storedFact(entry: Entry, atMs: number): StoredFact {
  const { rank, status, statusCode = "", amount = "", currency = "", held, words = [] } = entry;
  const operationId = entry.isAttempt ? "" : entry.operationId;
  const heldText = held === undefined ? "" : held ? "1" : "0";
  return [
    stateKey(entry),
    `${rank}`,
    status,
    operationId,
    statusCode,
    amount,
    currency,
    heldText,
    `${atMs}`,
    words.length > 0 ? JSON.stringify(words) : "",
  ];
}

/**
 * Adds a fact to those of its external_id, in place. It replaces the fact of the same operation,
 * but keeps that one's amount, currency and `held` if it has none itself.
 * @returns the keys of the failures that are one too many: their states have to be deleted
 */
export function foldIn(kept: Pick<PaymentRecord, "facts">, fact: StoredFact): string[] {
  const { facts } = kept;
  const at = facts.findIndex(([key]) => key === fact[0]);
  const before = facts[at];
  if (before) {
    for (const kept of [5, 6, 7] as const) fact[kept] ||= before[kept];
    facts[at] = fact;
  } else kept.facts = facts.concat([fact]);
  if (kept.facts.length <= maxFailures) return [];
  const failures = kept.facts.filter(isFailure).map(([key]) => key);
  const gone = failures.slice(0, Math.max(failures.length - maxFailures, 0));
  if (gone.length > 0) kept.facts = kept.facts.filter(([key]) => !gone.includes(key));
  return gone;
}

/**
 * Keeps the words of a status that is not known with the fact of its operation, which it does not
 * replace, in place.
 */
export function noteWords(
  { facts }: Pick<PaymentRecord, "facts">,
  [key, rank, , , , , , , , words]: StoredFact,
): void {
  const known = facts.find((fact) => fact[0] === key);
  if (known && Number(rank) < 0) known[9] = words;
}

/**
 * Applies what an entry says about a hold, in place.
 * - An entry with a call removes the note of that call.
 * - An answer marks its payment as held or not, if the payment became known before the answer.
 * - A call that was settled without its answer made one of the payments that are known by now. If
 *   it was noted and its entry says `held`, those that are not marked yet become held. Later
 *   payments do not.
 *
 * @returns whether this may change the state of the external_id. Then the answer is stored as an
 * event, even if it repeats what is known or comes late.
 */
export function takeHold(kept: PaymentRecord, fact: StoredFact, call: string | undefined): boolean {
  const wasNoted = kept.holds.length > 0;
  const isOwn = call !== undefined && kept.holds.includes(call);
  if (isOwn) kept.holds = kept.holds.filter((other) => other !== call);
  const held = fact[7];
  if (isOfCall(fact)) {
    if (isOwn && held === "1") for (const known of kept.facts) known[7] ||= held;
    return false;
  }
  const known = kept.facts.find(([key]) => key === fact[0]);
  if (!known || held === "" || known[7] !== "") return false;
  known[7] = held;
  return (held === "1") !== wasNoted;
}

/** Whether a fact is about a call rather than a payment or payout. */
function isOfCall([key]: StoredFact): boolean {
  return (JSON.parse(key) as string[])[1] === "call";
}

/** Most calls noted for one external_id: more than can be open. */
const maxHolds = 100;

/** The noted calls, with `call` added (`isHolding`) or removed. */
export function withHold(holds: readonly string[], call: string, isHolding: boolean): string[] {
  const others = holds.filter((other) => other !== call);
  return isHolding ? [...others, call].slice(-maxHolds) : others;
}

/** Whether a fact is a final state but no success: of an attempt, a refund, or a settled call. */
function isFailure([, rank, status]: StoredFact): boolean {
  return rank === "2" && status !== "success";
}

export function readFacts(
  stored: readonly StoredFact[],
  { held, folded }: Pick<Facts, "held" | "folded">,
): Facts {
  return { operations: stored.map(readFact), held, folded };
}

function readFact(stored: StoredFact): Fact {
  const [key, rank, status, operationId, statusCode, amount, currency, held, atMs, words] = stored;
  const [subjectId = "", operation = ""] = JSON.parse(key) as string[];
  const fact: Fact = {
    subjectId,
    operation,
    operationId,
    rank: Number(rank) as Rank,
    status,
    statusCode,
    amount,
    currency,
    atMs: Number(atMs),
    words: words ? (JSON.parse(words) as Words) : [],
  };
  return held === "" ? fact : { ...fact, held: held === "1" };
}

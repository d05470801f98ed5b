import type { Entry, Fact, Facts, Rank } from "./log.ts";
import { stateKey } from "./merge.ts";

export const noFacts: Facts = { operations: [], held: false, folded: 0 };

/** Ends that paid nothing, of which an external_id keeps the newest. */
export const maxFailures = 100;

/**
 * A fact as it is stored: the key of its operation, rank, status, operation_id, and what no store has
 * to understand: status_code, amount, currency, `1` or `0` if it is known whether it is held, and the
 * time in milliseconds.
 */
export type StoredFact = [
  key: string,
  rank: string,
  status: string,
  operationId: string,
  statusCode: string,
  amount: string,
  currency: string,
  held: string,
  atMs: string,
];

/** What an entry tells, to be stored; the store adds when. */
export function storedFact(entry: Entry, atMs: number): StoredFact {
  const { rank, status, statusCode = "", amount = "", currency = "", held } = entry;
  const operationId = entry.isAttempt ? "" : entry.operationId;
  const heldText = held === undefined ? "" : held ? "1" : "0";
  return [
    ...([stateKey(entry), `${rank}`, status, operationId] as const),
    ...([statusCode, amount, currency, heldText, `${atMs}`] as const),
  ];
}

/**
 * Takes a fact into those of its external_id, in place: it stands instead of the one of the same
 * operation, and what it does not tell stays as it was told. append-event.lua does the same.
 * @returns the keys of failures that are one too many: their states go
 */
export function foldIn(kept: Pick<Kept, "facts">, fact: StoredFact): string[] {
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

/** What is kept of an external id beside the states of its operations. */
export interface Kept {
  facts: StoredFact[];
  /** Calls with `confirm: false` of which it is not known yet which payment they made. */
  holds: string[];
  folded: number;
}

/**
 * Takes up what an answer tells of a hold, in place: its call is noted no more, and the payment that
 * became known before the answer is held or not. A call that was settled without its answer made one
 * of the payments that are known by then: what was held by its note is held by itself from then on,
 * and no later payment is. append-event.lua does the same.
 * @returns whether that may be another state than before: the answer is an event then, though it
 * repeats what was told, or comes late
 */
export function takeHold(kept: Kept, fact: StoredFact, call: string | undefined): boolean {
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

/** What became of a call, not of a payment or payout. */
function isOfCall([key]: StoredFact): boolean {
  return (JSON.parse(key) as string[])[1] === "call";
}

/** Calls that are noted at once, at most: more than can be open. */
export const maxHolds = 100;

/** The calls, with one of them noted, or noted no more. note-hold.lua does the same. */
export function withHold(holds: readonly string[], call: string, isHolding: boolean): string[] {
  const others = holds.filter((other) => other !== call);
  return isHolding ? [...others, call].slice(-maxHolds) : others;
}

/** Of states that were stored before there were facts: what they tell. */
export function factsOfStates(
  states: readonly {
    readonly subjectId: string;
    readonly operation: string;
    readonly operationId: string;
    readonly rank: Rank;
    readonly status: string;
    readonly atMs: number;
  }[],
): StoredFact[] {
  return states
    .toSorted((a, b) => a.atMs - b.atMs)
    .map(({ rank, status, operationId, atMs, ...state }) => [
      ...([stateKey({ ...state, operationId }), `${rank}`, status, operationId] as const),
      ...(["", "", "", "", `${atMs}`] as const),
    ]);
}

/** An end of anything that is no success: of an attempt, a refund, or a call that was settled. */
function isFailure([, rank, status]: StoredFact): boolean {
  return rank === "2" && status !== "success";
}

export function readFacts(
  stored: readonly StoredFact[],
  { held, folded }: Pick<Facts, "held" | "folded">,
): Facts {
  const operations = stored.map(
    ([key, rank, status, operationId, statusCode, amount, currency, heldText, atMs]): Fact => {
      const [subjectId = "", operation = ""] = JSON.parse(key) as string[];
      return {
        ...{ subjectId, operation, operationId, rank: Number(rank) as Rank, status },
        ...{ statusCode, amount, currency, atMs: Number(atMs) },
        ...(heldText === "" ? {} : { held: heldText === "1" }),
      };
    },
  );
  return { operations, held, folded };
}

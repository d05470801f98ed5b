import type { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { holdsLock } from "../../src/ledger/calls.ts";
import { isSameOperation } from "../../src/ledger/facts.ts";
import { outcomeFlags } from "../../src/ledger/open-calls.ts";
import { stateAfter } from "../../src/ledger/payment-state.ts";
import { newRecord, ofRecordKey, type PaymentRecord } from "../../src/ledger/record.ts";
import { type Applied, apply, nothing, type Step, type Stored, textOf, token } from "./store.ts";

export interface Result {
  /** The ledger that it leads to. */
  readonly id: number;
  readonly out: unknown;
  /** One of its events says PAID. */
  readonly saysPaid: boolean;
  /** The promise that the step breaks; empty if none. */
  readonly broken: string;
}

/** What is stored, as the checks read it. */
export interface Summary {
  readonly state: PaymentState;
  /** A success is known that was not taken back, for all that is known. */
  readonly hasSuccess: boolean;
  /** What was taken back was not known to have succeeded: it may be any success. */
  readonly isCancelVague: boolean;
  readonly answers: Stored["answers"];
  readonly calls: readonly CallSummary[];
}

export interface CallSummary {
  /** Undefined if it is not open. */
  readonly open: "running" | "unknown" | "pending" | undefined;
  readonly locks: boolean;
  readonly isFlagged: boolean;
  /** The furthest that the log tells of its attempt: as `At`, 0 if nothing. */
  readonly told: number;
  readonly saysNotDone: boolean;
  readonly saysUnknown: boolean;
}

/** A change to what a step decided, which plants a defect. */
export type Plant = (stored: Stored, before: () => Stored) => unknown;

/**
 * All that a world's store was seen to hold, each once, and what the steps make of it: they are pure,
 * so each is decided once for each ledger and tick, however many states of the world share these.
 */
export class Ledgers {
  readonly #recordKey: string;
  readonly #count: number;
  readonly #steps: readonly Step[];
  readonly #plant: Plant | undefined;
  readonly #ids = new Map<string, number>();
  readonly #texts: string[] = [];
  readonly #summaries: Summary[] = [];
  readonly #results: Map<number, Result>[] = [];

  /** @param count how many calls there are at most */
  constructor(recordKey: string, count: number, steps: readonly Step[], plant?: Plant) {
    this.#recordKey = recordKey;
    this.#count = count;
    this.#steps = steps;
    this.#plant = plant;
    this.#idOf(nothing);
  }

  get size(): number {
    return this.#texts.length;
  }

  summary(id: number): Summary {
    return this.#summaries[id]!;
  }

  run(id: number, step: number, tick: number, began: number): Result {
    const at = (step * 8 + tick) * 8 + began;
    const known = this.#results[id]!.get(at);
    if (known) return known;
    const text = this.#texts[id]!;
    const of = this.#steps[step]!;
    const applied = apply(text, of, { tick, began, recordKey: this.#recordKey });
    const { out, after, saysPaid } = applied;
    this.#plant?.(after, () => JSON.parse(text));
    const result = { id: this.#idOf(after), out, saysPaid, broken: brokenBy(of, applied) };
    this.#results[id]!.set(at, result);
    return result;
  }

  #idOf(stored: Stored): number {
    const text = textOf(stored);
    const known = this.#ids.get(text);
    if (known !== undefined) return known;
    const id = this.#texts.push(text) - 1;
    this.#ids.set(text, id);
    this.#results.push(new Map());
    this.#summaries.push(this.#summaryOf(stored));
    return id;
  }

  #summaryOf({ record, log, answers }: Stored): Summary {
    const known = record ?? newRecord();
    const { calls } = known;
    const { outcomeUnknown } = outcomeFlags(known);
    const { kind } = ofRecordKey(this.#recordKey);
    const tells = (i = "", at: number) => log.some((one) => one.startsWith(`${i} ${at} `));
    return {
      state: stateAfter(kind, known, outcomeUnknown),
      hasSuccess: log.some((one) => /^paid/.test(one) || (/^\d 3 /.test(one) && !tells(one[0], 5))),
      isCancelVague: log.some((one) => /^\d 5 /.test(one) && !tells(one[0], 3)),
      answers,
      calls: Array.from({ length: this.#count }, (_, i) => {
        const call = calls.find(({ id }) => id === `c${i}`);
        const told = log.map((one) => (one.startsWith(`${i} `) ? Number(one[2]) : 0));
        return {
          ...{ open: call?.state, locks: call !== undefined && holdsLock(call) },
          ...{ isFlagged: call?.needsOperator === true, told: Math.max(0, ...told) },
          saysNotDone: log.includes(`c${i} NOT_DONE`),
          saysUnknown: log.includes(`c${i} UNKNOWN`),
        };
      }),
    };
  }
}

/** The promises that can be said of one step on what is stored. */
function brokenBy({ acknowledges, isOwn }: Step, { before, after, told }: Applied): string {
  const { record, log, answers, events, due, givenUp } = after;
  if (acknowledges !== "" && !log.some((one) => one.startsWith(acknowledges))) {
    return "what was acknowledged is in the log";
  }
  const isTwice = (one: string) => one.endsWith("callback") && before.log.includes(one);
  if (told.some(isTwice)) return "one callback is one event";
  const { operations, calls, over } = record ?? newRecord();
  for (const was of before.operations) {
    const { rank, status, operationId } = was;
    const now = operations.find((one) => isSameOperation(one, was));
    if (!now) return "an operation is never forgotten";
    const isBack = now.rank < rank || (status === "success" && now.status !== status);
    const isAnother = operationId !== "" && now.operationId !== operationId;
    if (isBack && !isAnother) return "an operation never goes back";
  }
  if (!operations.every(({ n }) => events.includes(`e${n}`))) return "each operation has its event";
  if (new Set(calls.map(({ id }) => id)).size < calls.length) return "a call is open once";
  // Those that the ledger opens have another id each time, which here the same token begins.
  if (calls.some(({ id }) => over.includes(id) && !id.startsWith(token))) {
    return "a call that is over is not open";
  }
  const isTold = (id: string) => log.includes(`${id} SETTLED`) || log.includes(`${id} NOT_DONE`);
  if (calls.some(({ id, state }) => state !== "pending" && isTold(id))) {
    return "a call that was told as settled is not open";
  }
  // A look-up's own call may stand beside that of a late answer: both end with their payment.
  const claims = calls
    .filter((call) => isNamed(call) && /^c\d$/.test(call.id))
    .map(({ method, subjectId }) => `${method} ${subjectId}`);
  if (new Set(claims).size < claims.length) return "no attempt is taken for two calls";
  if (isOwn) return "";
  const isListed = ({ id, needsOperator }: PaymentRecord["calls"][number]) =>
    due.includes(id) !== needsOperator && givenUp.includes(id) === needsOperator;
  if (!calls.every(isListed) || due.length + givenUp.length !== calls.length) {
    return "each open call is looked up, or flagged for an operator";
  }
  const stays = ([digest, answer]: [string, string]) => answers[digest] === answer;
  return Object.entries(before.answers).every(stays) ? "" : "a key's answer stays";
}

function isNamed({ subjectId }: PaymentRecord["calls"][number]): boolean {
  return subjectId !== "";
}

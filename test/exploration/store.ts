import { CallOutcomeSchema, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { callOfMember, dueIndex, givenUpIndex } from "../../src/ledger/calls.ts";
import { absent, Change, Draft, type EventChange } from "../../src/ledger/change.ts";
import {
  isBlank,
  type KeyRecord,
  type PaymentRecord,
  type StoredOperation,
} from "../../src/ledger/record.ts";
import { placeOf } from "../../src/stores/cursor.ts";

/** What a store holds of one external_id and of the keys used with it. */
export interface Stored {
  record: PaymentRecord | null;
  /** The record of each `Idempotency-Key`, and the answer beside it. */
  keys: Record<string, KeyRecord>;
  answers: Record<string, string>;
  flags: Record<string, string>;
  /** The names of the events beside the record. */
  events: string[];
  /** The calls in each index. */
  due: string[];
  givenUp: string[];
  /** What the log says, in brief and sorted. */
  log: string[];
  /** When the store went away. */
  awayMs: number;
  newestMs: number;
}

/** A step on what is stored. Its outcome depends on that, on the tick, and on `began`. */
export interface Step {
  readonly decide: (on: On) => unknown;
  /** What it has to leave in the log: a call, and what became of it. */
  readonly acknowledges: string;
  /** It is on the calls that a process keeps, which no index lists. */
  readonly isOwn: boolean;
}

export interface On {
  readonly change: Change;
  readonly draft: Draft;
  readonly keyOf: (digest: string | undefined) => Draft | undefined;
  readonly stored: Stored;
  /** The tick at which the step's call began. */
  readonly began: number;
}

export interface Applied {
  readonly out: unknown;
  readonly after: Stored;
  readonly before: Pick<Stored, "answers" | "log"> & Pick<PaymentRecord, "operations">;
  /** What the step added to the log. */
  readonly told: readonly string[];
  readonly saysPaid: boolean;
}

/** Decides a step on a stored text, and commits it as a store does. */
export function apply(
  text: string,
  step: Step,
  { tick, began, recordKey }: { tick: number; began: number; recordKey: string },
): Applied {
  const after: Stored = JSON.parse(text);
  const { log, answers, record } = after;
  const operations = record?.operations.map((one) => ({ ...one })) ?? [];
  const nowMs = Math.max(timeOf(tick), after.newestMs + 1);
  const was = { ...absent, flags: new Map(Object.entries(after.flags)) };
  const draft = new Draft(recordKey, record ?? undefined, was);
  const keys = new Map<string, Draft>();
  const change = new Change(token, nowMs, [draft], ages);
  const keyOf = (digest: string | undefined) => {
    if (digest === undefined) return undefined;
    const key = keys.get(digest) ?? new Draft(`key:${digest}`, after.keys[digest]);
    keys.set(digest, key);
    return key;
  };
  const out = step.decide({ change, draft, keyOf, stored: after, began });

  after.record = isBlank(draft.value) ? null : (draft.value as PaymentRecord);
  const told = change.events.map((event) => briefOf(event, change.trace));
  after.log = [...new Set([...log, ...told])].sort();
  for (const [name, part] of draft.attachments) {
    after.events = [
      ...after.events.filter((other) => other !== name),
      ...(part === undefined ? [] : [name]),
    ];
  }
  for (const [name, value] of draft.flags) after.flags[name] = value;
  for (const [digest, { value, attachments }] of keys) {
    if (value === undefined) delete after.keys[digest];
    else after.keys[digest] = value as KeyRecord;
    const answer = attachments.get("answer");
    if (answer instanceof Uint8Array) {
      after.answers = { ...answers, [digest]: Buffer.from(answer).toString() };
    }
  }
  for (const { index, member, score } of change.indexes) {
    const name = ({ [dueIndex]: "due", [givenUpIndex]: "givenUp" } as const)[index];
    if (!name) continue;
    const { id } = callOfMember(member);
    const others = after[name].filter((other) => other !== id);
    after[name] = score === undefined ? others : [...others, id].sort();
  }
  // A process keeps nothing of calls that the store has.
  if (step.isOwn && !after.record) Object.assign(after, nothing);
  const saysPaid = change.events.some(({ event }) => event.state === PaymentState.PAID);
  return {
    out,
    after: ordered(after, nowMs),
    before: { answers, log, operations },
    told,
    saysPaid,
  };
}

/** An event in brief. Entries have their own brief in place of a `traceparent`. */
function briefOf({ event, call }: EventChange, trace = "paid"): string {
  if (call !== undefined) return `${call} ${CallOutcomeSchema.value[event.callOutcome]?.localName}`;
  return `${trace} ${event.source === EventSource.CALLBACK ? "callback" : "answer"}`;
}

/**
 * Makes contents that decide alike equal, in place: times keep their order and starts of calls their
 * tick, what came before every open call is equally old, sets are sorted, and what no decision reads
 * has no value.
 */
function ordered(stored: Stored, nowMs: number): Stored {
  const { record, keys, flags } = stored;
  const orderOf = (text: string) => {
    if (text.startsWith(token)) return nowMs * 1_000 + (Number(text.slice(token.length + 1)) || 0);
    return 1_000 * (text.length === 18 ? Number.parseInt(text.slice(0, 12), 16) : Number(text));
  };
  const times: { order: number; isStart: boolean; set: (ms: number) => void }[] = [];
  if (stored.awayMs > 0) {
    const set = (ms: number) => (stored.awayMs = ms);
    times.push({ order: stored.awayMs * 1_000, isStart: true, set });
  }
  if (record) {
    const nameOf = ({ subjectId, operation, operationId }: StoredOperation) =>
      `${subjectId} ${operation} ${operation === "refund" ? operationId : ""}`;
    record.operations.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
    record.over = record.over.toSorted();
    record.marks.sort();
    const names = new Map(record.operations.map(({ n }, at) => [`e${n}`, `e${at + 1}`]));
    stored.events = stored.events.map((name) => names.get(name) ?? name).sort();
    record.changes = record.operations.length || 1;
    if (record.last !== "") record.last = "last";
    for (const [at, one] of record.operations.entries()) {
      one.n = at + 1;
      for (const name of ["since", "place"] as const) {
        const set = (ms: number) => (one[name] = placeOf(ms));
        times.push({ order: orderOf(one[name]), isStart: false, set });
      }
    }
    for (const call of record.calls) {
      Object.assign(call, { dueMs: 0, checks: 0, notFound: 0 });
      // In these worlds the clock is never set back, and says the same.
      delete call.after;
      const set = (ms: number) => (call.startedAt = `${ms}`);
      times.push({ order: orderOf(call.startedAt), isStart: true, set });
    }
  }
  const firstStart = Math.min(...times.map(({ order, isStart }) => (isStart ? order : Infinity)));
  let [order, ms] = [0, baseMs];
  times.sort((a, b) => a.order - b.order || Number(b.isStart) - Number(a.isStart));
  for (const time of times) {
    if (time.order < firstStart) time.set(baseMs - 1);
    else {
      const earliest = time.isStart ? timeOf(tickOf(time.order / 1_000)) : 0;
      if (time.order !== order) ms = Math.max(ms + 1, earliest);
      order = time.order;
      time.set(ms);
    }
  }
  stored.newestMs = ms;
  for (const key of Object.values(keys)) {
    const isRead = key.state === "running";
    key.startedAt = isRead ? `${timeOf(tickOf(orderOf(key.startedAt) / 1_000))}` : "0";
  }
  stored.flags = Object.fromEntries(Object.entries(flags).sort(byFirst));
  return stored;
}

function byFirst([a]: readonly string[], [b]: readonly string[]): number {
  return a! < b! ? -1 : 1;
}

/** @throws Error if a time is left of which `ordered` does not know */
export function textOf(stored: Stored): string {
  const text = JSON.stringify(stored);
  if (text.includes(`${token}:`)) throw new Error(`a time of the commit is left: ${text}`);
  return text;
}

/** The clock goes on by ticks: a lease is over with the next one, a call is given up after three. */
const tickMs = 60_000;
export const leaseMs = tickMs / 2;
export const giveUpMs = 2.5 * tickMs;
/** How long what is stored counts in a scene. */
export const ages = { retentionMs: 1e12, firstLookMs: 1_000, giveUpMs };
const baseMs = 1_700_000_000_000;
/** Of each commit. */
export const token = "commit";

export function timeOf(tick: number): number {
  return baseMs + tick * tickMs;
}

function tickOf(ms: number): number {
  return Math.floor((ms - baseMs) / tickMs);
}

export const nothing: Stored = {
  ...{ record: null, keys: {}, answers: {}, flags: {}, events: [] },
  ...{ due: [], givenUp: [], log: [], awayMs: 0, newestMs: baseMs },
};

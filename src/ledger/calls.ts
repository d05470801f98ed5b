import { callOutcomeEntry } from "../events/call-outcome.ts";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import {
  type Ending,
  endedForMs,
  type Intent,
  type IntentStoreOptions,
  type KeyUse,
  keptBeyondMs,
  keyRetentionMs,
  type MoneyMethod,
  markOfEnding,
  maxAnswered,
  type NewIntent,
  type NextLook,
} from "../intents/store.ts";
import type { Change, Draft } from "./change.ts";
import { type Ages, addEntry, recordOf } from "./entries.ts";
import { type KeyRecord, type OpenCall, ofRecordKey, type PaymentRecord } from "./record.ts";

export type CallOptions = Ages & IntentStoreOptions;

/** What begin decided. The call's start is known once the change is committed. */
export type BeginDecision =
  | { readonly kind: "started" }
  /** The call is over already: this process was suspended while it began. */
  | { readonly kind: "over" }
  | { readonly kind: "inFlight" | "keyReused" | "keyRunning" | "keyUnknown" | "keyAnswered" };

/** Takes key and lock, and opens the call: all of it or nothing. */
export function beginCall(
  change: Change,
  draft: Draft,
  keyDraft: Draft | undefined,
  given: NewIntent,
  options: CallOptions,
): BeginDecision {
  const { nowMs } = change;
  const record = recordOf(draft, nowMs, options);
  if (record.calls.some(({ id }) => id === given.id)) return { kind: "started" };
  if (isOver(record, given.id)) return { kind: "over" };
  const key = keyDraft?.value as KeyRecord | undefined;
  if (key && given.key) {
    const { fingerprints } = given.key;
    if (key.method !== given.method || !fingerprints.includes(key.fingerprint)) {
      return { kind: "keyReused" };
    }
    if (key.state === "done") return { kind: "keyAnswered" };
    const isRunning = key.state === "running" && Number(key.startedAt) + key.leaseMs > nowMs;
    return { kind: isRunning ? "keyRunning" : "keyUnknown" };
  }
  if (isLocked(record, given.method, nowMs, options.giveUpMs)) return { kind: "inFlight" };

  const call: OpenCall = {
    ...{ id: given.id, method: given.method, state: "running", startedAt: change.now },
    ...{ leaseMs: given.leaseMs, locks: true, subjectId: "", checks: 0, notFound: 0 },
    ...{ needsOperator: false, keyDigest: given.key?.digest ?? "", dueMs: nowMs + given.leaseMs },
  };
  open(change, draft, record, call);
  if (keyDraft && given.key) {
    keyDraft.value = {
      ...{ fingerprint: given.key.fingerprints[0] ?? "", method: given.method, callId: given.id },
      ...{ startedAt: change.now, leaseMs: given.leaseMs, state: "running" },
    } satisfies KeyRecord;
    keyDraft.keepMs = keyRetentionMs;
  }
  return { kind: "started" };
}

/** Opens a call that began without the store, or that the store has lost. Twice does no harm. */
export function adoptCall(
  change: Change,
  draft: Draft,
  call: OpenCall,
  options: CallOptions,
): void {
  const record = recordOf(draft, change.nowMs, options);
  if (record.calls.some(({ id }) => id === call.id) || isOver(record, call.id)) return;
  open(change, draft, record, call);
}

/**
 * Ends a call: closes it, or keeps it as pending or unknown. If it was stored as unknown, its own
 * late ending publishes the outcome too. Twice does no harm.
 * @param given the call, if it runs in this process: what the store lost of it is stored again
 */
export function endCall(
  change: Change,
  draft: Draft,
  keyDraft: Draft | undefined,
  intent: Intent,
  ending: Ending,
  options: CallOptions,
  given?: NewIntent,
): void {
  const { nowMs } = change;
  const { id } = intent;
  const record = recordOf(draft, nowMs, options);
  if (keyDraft) endKey(keyDraft, intent, ending, given?.key);
  // A begin that is still on its way must not open the call behind its ending: the new version bars it.
  record.changes++;
  // Within its lease only this process ends a call: the store has lost it with a server that failed.
  const isLost = given !== undefined && ending.state !== "closed" && nowMs < intent.leaseUntilMs;
  if (isLost) adoptCall(change, draft, callOf(intent), options);
  const call = record.calls.find((one) => one.id === id);
  if (ending.state === "closed") noteOver(record, id, nowMs);
  const mark = markOfEnding(ending);
  if (!call) {
    // Its events ended it before: what it made is no other call's doing even so.
    if (mark && !record.marks.includes(mark)) addMark(record, mark);
    return;
  }
  const was = call.state;
  const publishes = was === "unknown" && ending.state !== "unknown" && ending.key !== "keep";
  if (publishes) {
    const { kind, externalId } = ofRecordKey(draft.key);
    const outcome = ending.key === "free" ? CallOutcome.NOT_DONE : CallOutcome.SETTLED;
    addEntry(change, draft, callOutcomeEntry({ id, kind, externalId }, outcome), options);
  }
  if (ending.state !== "unknown") call.locks = false;
  const subjectId = ending.state === "pending" ? ending.subjectId : "";
  const again = was === "pending" && ending.state === "pending" && call.subjectId === subjectId;
  if (mark !== undefined && !again) addMark(record, mark);
  if (ending.state === "closed") {
    record.calls = record.calls.filter((one) => one !== call);
    indexCall(change, draft, call, undefined);
    if (call.needsOperator) dropGivenUp(change, draft, call);
    return;
  }
  // An outcome that became known in between stands.
  if (again || (ending.state === "unknown" && was !== "running")) return;
  Object.assign(call, { state: ending.state, subjectId, checks: 0, notFound: 0 });
  call.dueMs = nowMs + options.firstLookMs;
  if (!call.needsOperator) indexCall(change, draft, call, call.dueMs);
}

/** Sets when a call is looked at next. */
export function postponeCall(change: Change, draft: Draft, id: string, next: NextLook): void {
  const call = callIn(draft, id);
  if (!call) return;
  const { checks, notFound } = next;
  Object.assign(call, { checks, notFound, dueMs: change.nowMs + next.inMs });
  indexCall(change, draft, call, call.dueMs);
}

/** Makes the calls of a record due now, except running ones. @returns whether any is due now */
export function scheduleCalls(change: Change, draft: Draft): boolean {
  let found = false;
  for (const call of (draft.value as PaymentRecord | undefined)?.calls ?? []) {
    if (call.needsOperator) continue;
    if (call.state !== "running" && call.dueMs > change.nowMs) {
      call.dueMs = change.nowMs;
      indexCall(change, draft, call, call.dueMs);
    }
    found ||= call.dueMs <= change.nowMs;
  }
  return found;
}

/** Ends the leases of running calls and of a key: their process is gone. */
export function endLeases(change: Change, draft: Draft, keyDraft: Draft | undefined): void {
  const record = draft.value as PaymentRecord | undefined;
  const over = (since: string, leaseMs: number) =>
    Math.min(leaseMs, Math.max(change.nowMs - Number(since), 0));
  for (const call of record?.calls ?? []) {
    if (call.state !== "running") continue;
    call.leaseMs = over(call.startedAt, call.leaseMs);
    call.dueMs = change.nowMs;
    indexCall(change, draft, call, call.dueMs);
  }
  const key = keyDraft?.value as KeyRecord | undefined;
  if (key) key.leaseMs = over(key.startedAt, key.leaseMs);
}

/** Stops looking a call up, releases its lock, and keeps it for an operator. */
export function giveUpCall(change: Change, draft: Draft, id: string): void {
  const call = callIn(draft, id);
  if (!call) return;
  Object.assign(call, { needsOperator: true, locks: false });
  indexCall(change, draft, call, undefined);
  const member = memberOfCall(call.id, draft.key);
  change.indexes.push({ index: givenUpIndex, member, score: change.nowMs });
}

/** A call as a record holds it. */
export function callOf(intent: Intent): OpenCall {
  const { id, method, state, startedAtMs, leaseUntilMs, subjectId, checks, notFound } = intent;
  return {
    ...{ id, method, state, startedAt: `${startedAtMs}`, leaseMs: leaseUntilMs - startedAtMs },
    ...{ locks: state !== "pending", subjectId, checks, notFound },
    ...{ needsOperator: intent.needsOperator, keyDigest: intent.keyDigest, dueMs: leaseUntilMs },
  };
}

/** A call as those outside see it. */
export function intentOfCall(key: string, call: OpenCall, marks: readonly string[]): Intent {
  const { id, method, state, subjectId, checks, notFound, needsOperator, keyDigest } = call;
  const startedAtMs = Number(call.startedAt);
  return {
    ...{ id, method, ...ofRecordKey(key), state, startedAtMs },
    ...{ leaseUntilMs: startedAtMs + call.leaseMs, subjectId, answered: marks },
    ...{ checks, notFound, needsOperator, keyDigest },
  };
}

export const dueIndex = "due";
export const givenUpIndex = "given-up";

/** Names a call in an index. */
export function memberOfCall(id: string, key: string): string {
  return `${id} ${key}`;
}

export function callOfMember(member: string): { readonly id: string; readonly key: string } {
  const at = member.indexOf(" ");
  return { id: member.slice(0, at), key: member.slice(at + 1) };
}

/** How long a record with calls is kept after its last change, in milliseconds. */
export function keepCallsMs({ giveUpMs }: IntentStoreOptions): number {
  return giveUpMs + keptBeyondMs;
}

function open(change: Change, draft: Draft, record: PaymentRecord, call: OpenCall): void {
  record.calls.push(call);
  record.changes++;
  indexCall(change, draft, call, call.dueMs);
}

function addMark(record: PaymentRecord, mark: string): void {
  record.marks = [...record.marks, mark].slice(-maxAnswered);
}

function isOver({ over }: PaymentRecord, callId: string): boolean {
  return over.some(({ id }) => id === callId);
}

function noteOver(record: PaymentRecord, id: string, nowMs: number): void {
  const others = record.over.filter((one) => one.id !== id && one.atMs > nowMs - endedForMs);
  record.over = [...others, { id, atMs: nowMs }].slice(-maxOver);
}

/** How many ended calls a record keeps. */
const maxOver = 10;

function isLocked(
  { calls }: PaymentRecord,
  method: MoneyMethod,
  nowMs: number,
  giveUpMs: number,
): boolean {
  return calls.some(
    (call) => call.method === method && call.locks && Number(call.startedAt) + giveUpMs > nowMs,
  );
}

function endKey(
  draft: Draft,
  { id, method, startedAtMs, leaseUntilMs }: Intent,
  ending: Ending,
  use: KeyUse | undefined,
): void {
  draft.keepMs = keyRetentionMs;
  const isFreed = ending.state !== "unknown" && ending.key === "free";
  if (!draft.value && use && !isFreed) {
    draft.value = {
      ...{ fingerprint: use.fingerprints[0] ?? "", method, callId: id, state: "running" },
      ...{ startedAt: `${startedAtMs}`, leaseMs: leaseUntilMs - startedAtMs },
    } satisfies KeyRecord;
  }
  const key = draft.value as KeyRecord | undefined;
  if (!key || key.callId !== id) return;
  if (ending.state === "unknown") {
    // An answer that came in between stands.
    if (key.state === "running") key.state = "unknown";
  } else if (ending.key === "free") draft.value = undefined;
  else if (ending.key !== "keep") {
    key.state = "done";
    draft.attachments.set("answer", ending.key);
  }
}

function callIn(draft: Draft, id: string): OpenCall | undefined {
  return (draft.value as PaymentRecord | undefined)?.calls.find((call) => call.id === id);
}

function indexCall(change: Change, draft: Draft, call: OpenCall, score: number | undefined): void {
  change.indexes.push({ index: dueIndex, member: memberOfCall(call.id, draft.key), score });
}

function dropGivenUp(change: Change, draft: Draft, call: OpenCall): void {
  const member = memberOfCall(call.id, draft.key);
  change.indexes.push({ index: givenUpIndex, member, score: undefined });
}

import { createHash } from "node:crypto";
import { CallOutcome } from "../gen/payments/v1/event_pb.ts";
import { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import { boundedId } from "../model/bounded-id.ts";
import type { MoneyMethod } from "../model/money-methods.ts";
import type { Change, Draft } from "./change.ts";
import { addEntry, addOutcome, recordOf } from "./entries.ts";
import { successEntry } from "./entry.ts";
import { evidenceOf, isOperationOf, markByAnother, methodOf } from "./evidence.ts";
import { dropHold } from "./facts.ts";
import {
  type About,
  type Ages,
  type AlreadyPaid,
  type Begun,
  type Ending,
  type Intent,
  isUnknown,
  type Look,
  type NewIntent,
  type OpenCall,
} from "./intents.ts";
import type { Appended, Entry } from "./log.ts";
import { paymentState } from "./payment-state.ts";
import { type KeyRecord, ofRecordKey, type PaymentRecord } from "./record.ts";

/**
 * Takes key and lock, and opens the call: all of it or nothing.
 * @returns the call, or why it does not begin; `over`: it is over already, since this process was
 * suspended while it began
 */
export function beginCall(
  change: Change,
  draft: Draft,
  keyDraft: Draft | undefined,
  given: NewIntent,
): OpenCall | Exclude<Begun["kind"], "started"> | "over" {
  const { nowMs } = change;
  const record = recordOf(draft);
  const known = callIn(draft, given.id);
  if (known) return known;
  change.isRead = true;
  if (record.over.includes(given.id)) return "over";
  const key = keyDraft?.value as KeyRecord | undefined;
  if (key && given.key) {
    const { fingerprints } = given.key;
    if (key.method !== given.method || !fingerprints.includes(key.fingerprint)) {
      return "keyReused";
    }
    if (key.state === "done") return "keyAnswered";
    return isUnknown(key, nowMs) ? "keyUnknown" : "keyRunning";
  }
  const isBarred = () => isLocked(record.calls, given.method, nowMs, change.ages);
  // The lock of a call whose process died falls with its callback.
  if (isBarred() && settleCalls(change, draft, true)) change.isRead = false;
  if (isBarred()) return "inFlight";

  change.isRead = false;
  const call = { ...newCall(given, nowMs, change.now), after: record.last };
  // What is known already is none of its doing: its note must not show that as held.
  if (call.hold && record.holds.length === 0)
    for (const one of record.operations) one.held ??= false;
  open(change, draft, record, call);
  if (keyDraft) keyDraft.value = newKey(given, change.now);
  return call;
}

/** Opens a call that began without the store, or that the store has lost. Twice does no harm. */
export function adoptCall(
  change: Change,
  draft: Draft,
  given: NewIntent,
  startedAtMs: number,
): void {
  const record = recordOf(draft);
  if (callIn(draft, given.id) || record.over.includes(given.id)) return;
  open(change, draft, record, newCall(given, startedAtMs));
  settleCalls(change, draft);
}

/** Stores what a callback or a look-up tells, and ends the calls whose outcome it shows. */
export function addNews(change: Change, draft: Draft, entry: Entry): Appended {
  const appended = addEntry(change, draft, entry);
  settleCalls(change, draft);
  openForPending(change, draft);
  return appended;
}

/**
 * Ends a call with its answer, its refusal or its loss, and the calls that this settles. If it was
 * stored as unknown, its own late ending publishes the outcome too. Twice does no harm.
 * @param told what its answer tells of the payment or payout
 */
export function endCall(
  change: Change,
  draft: Draft,
  keyDraft: Draft | undefined,
  intent: Intent,
  ending: Ending,
  told?: Entry,
): Appended | undefined {
  const { nowMs } = change;
  const { id, given } = intent;
  const record = recordOf(draft);
  if (keyDraft) endKey(keyDraft, intent, ending);
  // A begin that is still on its way must not open the call behind its ending: the new version bars it.
  record.changes++;
  // Within its lease only this process ends a call: the store has lost it with a server that failed.
  const mayBeLost = ending.state !== "closed" && nowMs < intent.startedAtMs + intent.leaseMs;
  if (given && mayBeLost) adoptCall(change, draft, given, intent.startedAtMs);
  const was = callIn(draft, id)?.state;
  if (ending.state === "closed" && ending.paid) settleAsPaid(change, draft, ending.paid, id);
  const appended = told && addEntry(change, draft, told);
  // By its own word it made nothing, so no later payment is taken for its hold.
  if (ending.state === "closed" && ending.key !== "keep" && !told) dropHold(record, id);
  conclude(change, draft, id, ending);
  if (was === "unknown" && ending.state !== "unknown" && ending.key !== "keep") {
    const isDone = ending.key !== "free";
    addOutcome(change, draft, id, isDone ? CallOutcome.SETTLED : CallOutcome.NOT_DONE);
  }
  settleCalls(change, draft);
  if (ending.state === "unknown" && was === "running" && callIn(draft, id)?.state === "unknown") {
    addOutcome(change, draft, id, CallOutcome.UNKNOWN);
  }
  openForPending(change, draft);
  return appended;
}

/** Closes a call, or keeps it as pending or unknown, and notes its mark. */
export function conclude(change: Change, draft: Draft, id: string, ending: Ending): void {
  const record = draft.value as PaymentRecord;
  const call = callIn(draft, id);
  if (ending.state === "closed") {
    record.over = [...record.over.filter((one) => one !== id), id].slice(-maxOver);
  }
  const mark = markOfEnding(ending);
  if (!call) {
    // Its events ended it before: what it made is no other call's doing even so.
    if (mark && !record.marks.includes(mark)) addMark(record, mark);
    return;
  }
  const was = call.state;
  const subjectId = ending.state === "pending" ? ending.subjectId : "";
  const again = was === "pending" && ending.state === "pending" && call.subjectId === subjectId;
  if (mark !== undefined && !again) addMark(record, mark);
  if (ending.state === "closed") {
    record.calls = record.calls.filter((one) => one !== call);
    indexCall(change, draft, call, dueIndex, undefined);
    if (call.needsOperator) indexCall(change, draft, call, givenUpIndex, undefined);
    return;
  }
  // An outcome that became known in between stands.
  if (again || (ending.state === "unknown" && was !== "running")) return;
  Object.assign(call, { state: ending.state, subjectId, checks: 0, notFound: 0 });
  call.dueMs = change.nowMs + change.ages.firstLookMs;
  if (!call.needsOperator) indexDue(change, draft, call);
}

/**
 * Opens a call for each payment or payout that is not at its end and that no open call made, so that
 * it is looked up like one that a call of this gateway made.
 */
function openForPending(change: Change, draft: Draft): void {
  const { nowMs, ages } = change;
  const record = draft.value as PaymentRecord;
  for (const one of record.operations) {
    const method = one.rank === 2 ? undefined : methodOf(one.operation);
    if (!method || draft.key.length > maxKeyChars || record.calls.length >= maxPending) continue;
    // A running call may have made it: its own answer is to come.
    const isItsOwn = ({ method, state, subjectId }: OpenCall) =>
      isOperationOf(method, one) && (state === "running" || subjectId === one.subjectId);
    if (record.calls.some(isItsOwn)) continue;
    const name = createHash("sha256").update(JSON.stringify([method, one.subjectId]));
    // Another one each time: who drops what is left of a call in an index must not meet its successor.
    const id = `${change.token}-${name.digest("base64url")}`;
    const call: OpenCall = {
      ...newCall({ id, method, leaseMs: 0 }, nowMs),
      ...{ state: "pending", subjectId: one.subjectId },
      dueMs: nowMs + ages.firstLookMs,
    };
    const alone = { ...record, calls: [], marks: [] };
    if (!evidenceOf(call, alone)) open(change, draft, record, call);
  }
}

/** Far more than the external_id of a request needs. Longer ones are not looked up. */
const maxKeyChars = 2_048;

/** With more open calls, what is pending waits until some of them are at their end. */
const maxPending = 100;

/**
 * Ends the calls whose outcome the record shows, and tells watchers. Each step that may show one does
 * this. A call within its lease is left alone, since its own answer is to come, unless `running` is
 * set: then it ends, too, if what it made is at its end.
 * @returns whether there was one
 */
export function settleCalls(change: Change, draft: Draft, running = false): boolean {
  let found = false;
  // What one call accounts for may show what became of another.
  while (settleOne(change, draft, running)) found = true;
  return found;
}

function settleOne(change: Change, draft: Draft, running: boolean): boolean {
  const record = draft.value as PaymentRecord;
  for (const call of record.calls) {
    const { id, state } = call;
    const isRunning = state === "running" && !isUnknown(call, change.nowMs);
    if (isRunning && !running) continue;
    const evidence = evidenceOf(call, record, isRunning);
    if (!evidence || (isRunning && evidence.state !== "closed")) continue;
    // Settled by a hold that another one made, it may have made one even so, if that was cancelled.
    const isShown =
      evidence.mark !== markByAnother || paymentState(record) !== PaymentState.AUTHORIZED;
    conclude(change, draft, id, evidence);
    // What a call made that was noted as a hold is known by now: later payments are none.
    if (isShown && dropHold(record, id)) for (const one of record.operations) one.held ??= true;
    if (state !== "pending") addOutcome(change, draft, id, CallOutcome.SETTLED);
    if (evidence.state === "closed") change.settled.push({ call });
    return true;
  }
  return false;
}

/**
 * Settles the calls of unknown outcome for an external_id that the service reports as already paid:
 * one of them must have paid it.
 * @param asker the call that was answered so: it paid nothing
 */
export function settleAsPaid(
  change: Change,
  draft: Draft,
  said: AlreadyPaid,
  asker?: string,
): void {
  const { nowMs } = change;
  const record = recordOf(draft);
  const unknown = record.calls.find(
    (call) => call.method === "CreatePayment" && call.id !== asker && isUnknown(call, nowMs),
  );
  // The Error object may be about a payment that was taken back since, which is no evidence.
  if (!unknown || isOfKnown(said, record)) return;
  const { externalId } = ofRecordKey(draft.key);
  addEntry(change, draft, successEntry({ id: unknown.id, externalId }, said));
  settleCalls(change, draft);
}

/**
 * Whether the Error object may be about a payment on record: one that succeeded, was taken back since,
 * or may have succeeded by now.
 */
function isOfKnown({ paymentId }: AlreadyPaid, { operations }: PaymentRecord): boolean {
  return operations.some(({ operation, status, rank, subjectId }) => {
    if (!paymentId && operation === "payment" && rank < 2) return true;
    const isOfIt = !paymentId || subjectId === boundedId(paymentId);
    return isOfIt && ofPaid.has(operation) && status === "success";
  });
}

/** What a payment that succeeded has: its own callback may come behind that of its cancellation. */
const ofPaid: ReadonlySet<string> = new Set(["payment", "cancel", "refund"]);

/** Stores what a look found out, what follows for the calls, and when this one is looked at next. */
export function lookedAt(
  change: Change,
  draft: Draft,
  id: string,
  { checks, notFound, inMs, told, paid, neverArrived }: Look,
): Appended | undefined {
  const looked = callIn(draft, id);
  if (looked) {
    Object.assign(looked, { checks, notFound, dueMs: change.nowMs + inMs });
    indexDue(change, draft, looked);
  }
  if (paid) settleAsPaid(change, draft, paid);
  const appended = told && addNews(change, draft, told);
  const call = callIn(draft, id);
  if (neverArrived && call?.state === "unknown") {
    change.settled.push({ call, by: "notFound" });
    conclude(change, draft, id, { state: "closed", key: "keep" });
    dropHold(draft.value as PaymentRecord, id);
    addOutcome(change, draft, id, CallOutcome.NOT_DONE);
    settleCalls(change, draft);
  }
  return appended;
}

/** Stops looking a call up, releases its lock, tells watchers, and keeps it for an operator. */
export function giveUpCall(change: Change, draft: Draft, id: string): void {
  const call = callIn(draft, id);
  if (!call || call.needsOperator) return;
  call.needsOperator = true;
  indexCall(change, draft, call, dueIndex, undefined);
  indexCall(change, draft, call, givenUpIndex, change.nowMs);
  if (call.state === "unknown") addOutcome(change, draft, id, CallOutcome.NEEDS_OPERATOR);
  settleCalls(change, draft);
}

/** A call that has just begun. @param startedAt when, or what stands for it (`Change.now`) */
export function newCall(
  { id, method, leaseMs, hold, key, trace }: Omit<NewIntent, "kind" | "externalId">,
  startedAtMs: number,
  startedAt = `${startedAtMs}`,
): OpenCall {
  return {
    id,
    method,
    state: "running",
    startedAt,
    leaseMs,
    subjectId: "",
    checks: 0,
    notFound: 0,
    needsOperator: false,
    keyDigest: key?.digest ?? "",
    dueMs: startedAtMs + leaseMs,
    ...(hold && { hold }),
    ...(trace !== undefined && { trace }),
  };
}

export function intentOfCall({ kind, externalId }: About, call: OpenCall): Intent {
  return { ...call, kind, externalId, startedAtMs: Number(call.startedAt) };
}

/** By when a call is looked at next; see `pendingFrom`. */
export const dueIndex = "due";

/**
 * What pending calls have as an extra score: they come behind all that may hold a lock, and there may
 * be very many of them.
 */
export const pendingFrom = 1e13;

export const givenUpIndex = "given-up";

/** The call that a member of an index names. */
export function callOfMember(member: string): { readonly id: string; readonly key: string } {
  const at = member.indexOf(" ");
  return { id: member.slice(0, at), key: member.slice(at + 1) };
}

/** Calls that were given up stay visible that long. */
export const keptBeyondMs = 7 * 24 * 3_600_000;

function open(change: Change, draft: Draft, record: PaymentRecord, call: OpenCall): void {
  record.calls.push(call);
  // A callback may come before the answer, or instead of it: it must not show the hold as paid.
  if (call.hold) record.holds = [...record.holds, call.id].slice(-maxHolds);
  record.changes++;
  indexDue(change, draft, call);
}

/** Most calls noted for one external_id: more than can be open. */
const maxHolds = 100;

export function addMark(record: Pick<PaymentRecord, "marks">, mark: string): void {
  record.marks = [...record.marks, mark].slice(-maxAnswered);
}

/** How many marks of answered attempts are kept per external_id. */
const maxAnswered = 50;

/** What an ending adds to the marks. */
export function markOfEnding(ending: Ending): string | undefined {
  if (ending.state === "unknown") return undefined;
  return ending.mark ?? ((ending.state === "pending" && ending.subjectId) || undefined);
}

/** How many ended calls a record keeps. */
const maxOver = 10;

/** Whether an open call bars another one of its method: until it has an answer, or is given up. */
export function holdsLock({ state, needsOperator }: OpenCall): boolean {
  return state !== "pending" && !needsOperator;
}

export function isLocked(
  calls: readonly OpenCall[],
  method: MoneyMethod,
  nowMs: number,
  { locksMs = Infinity }: Ages,
): boolean {
  return calls.some(
    (call) => call.method === method && holdsLock(call) && Number(call.startedAt) + locksMs > nowMs,
  );
}

/** The first use of a call's key. @param startedAt as in `newCall` */
function newKey({ id, method, leaseMs, key }: NewIntent, startedAt: string): KeyRecord {
  const [fingerprint = ""] = key?.fingerprints ?? [];
  return { fingerprint, method, callId: id, startedAt, leaseMs, state: "running" };
}

function endKey(draft: Draft, { id, startedAtMs, given }: Intent, ending: Ending): void {
  const isFreed = ending.state !== "unknown" && ending.key === "free";
  if (given && !isFreed) draft.value ??= newKey(given, `${startedAtMs}`);
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

/** Sets when a call is looked at next. */
function indexDue(change: Change, draft: Draft, call: OpenCall): void {
  const { state, dueMs } = call;
  indexCall(change, draft, call, dueIndex, state === "pending" ? pendingFrom + dueMs : dueMs);
}

/** @param score undefined takes the call out of the index */
function indexCall(
  change: Change,
  draft: Draft,
  { id }: OpenCall,
  index: string,
  score: number | undefined,
): void {
  change.indexes.push({ index, member: `${id} ${draft.key}`, score });
}

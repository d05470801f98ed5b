import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallOutcome, type Event, EventSchema, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Change, Draft } from "./change.ts";
import { factOf, foldIn, isSameOperation, merge, replaced, takeHold } from "./facts.ts";
import type { About, Ages } from "./intents.ts";
import type { Appended, Entry } from "./log.ts";
import { statesAfter } from "./payment-state.ts";
import { newRecord, ofRecordKey, type PaymentRecord } from "./record.ts";

/**
 * Adds what became known of a payment or payout to its record: an event, unless it repeats what is
 * known, and the state of its operation.
 */
export function addEntry(change: Change, draft: Draft, entry: Entry): Appended {
  const appended = addTo(change, draft, entry);
  change.written.push({ ...appended, source: entry.source });
  return appended;
}

function addTo(change: Change, draft: Draft, entry: Entry): Appended {
  const record = recordOf(draft);
  const known = record.operations.find((one) => isSameOperation(one, entry));
  const { replaces, late, conflict } = merge(known, entry);
  const changesHold = takeHold(record, known, entry);
  const isCallback = entry.source === EventSource.CALLBACK;
  const flags = flagsOf(entry);
  const isSeen = (name: string) =>
    isCallback ? draft.flag(name) === "c" : draft.flag(name) !== "";
  const isRepeat = flags.some(isSeen) || (late && !isCallback);
  if (isRepeat && !changesHold) return { outcome: "duplicate", conflict: false };

  const { event, place, number } = append(change, draft, entry.event);
  if (replaces) {
    const fact = factOf(entry);
    const operation = known
      ? replaced(known, fact, place)
      : { n: record.changes, ...fact, since: place, place };
    if (known) record.operations[record.operations.indexOf(known)] = operation;
    else record.operations.push(operation);
    draft.attachments.set(`e${operation.n}`, number);
    for (const { n } of foldIn(record)) draft.attachments.set(`e${n}`, undefined);
  } else if (known && entry.rank < 0) known.words = entry.words;
  showState(draft, event);
  for (const name of flags) {
    if (isCallback) draft.flags.set(name, "c");
    else if (draft.flag(name) === "") draft.flags.set(name, "o");
  }
  return { outcome: "stored", event, conflict };
}

/** Adds the event that tells watchers what became of a call whose answer was lost. */
export function addOutcome(change: Change, draft: Draft, id: string, outcome: CallOutcome): void {
  const { event } = append(change, draft, outcomeEvent(ofRecordKey(draft.key), outcome), id);
  showState(draft, event);
  change.written.push({ outcome: "stored", conflict: false, source: event.source });
}

/** The event of such an outcome. */
export function outcomeEvent({ kind, externalId }: About, callOutcome: CallOutcome): Event {
  const isLost = callOutcome === CallOutcome.UNKNOWN;
  const source = isLost ? EventSource.RESPONSE : EventSource.RECONCILIATION;
  return create(EventSchema, { kind, externalId, source, callOutcome });
}

/**
 * Appends an event, which has no state yet (`showState`).
 * @param call the call whose outcome it tells, if it tells one
 */
function append(change: Change, draft: Draft, told: Event, call?: string) {
  const record = recordOf(draft);
  // A copy, since the writer keeps its own event; all readers share this one.
  const event: Event = { ...told, receivedAt: timestampFromMs(change.nowMs) };
  const appended = change.append(draft.key, event, call);
  record.changes++;
  record.last = appended.place;
  return { event, ...appended };
}

/** Puts the state after an event on it: a call whose loss was published leaves it open. */
function showState(draft: Draft, event: Event): void {
  const record = recordOf(draft);
  const isLost = record.calls.some(({ state }) => state === "unknown");
  const { kind } = ofRecordKey(draft.key);
  Object.assign(event, statesAfter(kind, record, isLost));
}

/** How long a record is kept after its last event, at least, in milliseconds. */
export function keptFor({ retentionMs }: Pick<Ages, "retentionMs">): number {
  return 2 * retentionMs;
}

/** The draft's record, a new one if there is none. */
export function recordOf(draft: Draft): PaymentRecord {
  draft.value ??= newRecord();
  return draft.value as PaymentRecord;
}

/**
 * The flags by which repeats of an entry are told: `c` if a callback has set it, `o` if another entry
 * has. A callback repeats an earlier callback with the same body or the same identity. A response or a
 * reconciliation repeats any earlier entry with the same identity.
 */
function flagsOf({ identity, digest }: Entry): string[] {
  // 96 bits tell the entries of one external_id apart.
  const names = [`i${identity.slice(0, 16)}`];
  return digest === undefined ? names : [...names, `b${digest.slice(0, 16)}`];
}

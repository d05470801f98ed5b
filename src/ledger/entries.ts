import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Change, Draft } from "./change.ts";
import { factOf, foldIn, replaced, takeHold } from "./facts.ts";
import type { Ages } from "./intents.ts";
import type { Appended, Entry, Facts } from "./log.ts";
import { isSameOperation, merge } from "./merge.ts";
import { statesAfter } from "./payment-state.ts";
import { newRecord, type PaymentRecord, type StoredOperation } from "./record.ts";

/**
 * Adds what became known of a payment or payout to its record: an event, unless it repeats what is
 * known, and the state of its operation.
 */
export function addEntry(change: Change, draft: Draft, entry: Entry): Appended {
  const { nowMs } = change;
  const record = recordOf(change, draft);
  const known = record.operations.find((one) => isSameOperation(one, entry));
  const { replaces, late, conflict } = merge(known, entry);
  const changesHold = takeHold(record, known, entry);
  const seen = seenOf(change, draft, entry);
  const isCallback = entry.source === EventSource.CALLBACK;
  const isRepeat = isCallback
    ? seen.identity === "c" || seen.body !== ""
    : late || seen.identity !== "";
  if (isRepeat && !changesHold) return { outcome: "duplicate", conflict: false };

  record.changes++;
  // A copy, since the writer keeps its own event; all readers share this one.
  const event: Event = { ...entry.event, receivedAt: timestampFromMs(nowMs) };
  const { place, number } = change.append(draft.key, event, entry.trace);
  record.last = place;
  record.lastMs = nowMs;
  if (replaces) {
    const fact = factOf(entry, change.now);
    const operation = known
      ? replaced(known, fact, place)
      : { n: record.changes, ...fact, since: place, place };
    if (known) record.operations[record.operations.indexOf(known)] = operation;
    else record.operations.push(operation);
    draft.attachments.set(`e${operation.n}`, number);
    for (const { n } of foldIn(record)) draft.attachments.set(`e${n}`, undefined);
  } else if (known && entry.rank < 0) known.words = entry.words ?? [];
  Object.assign(event, statesAfter(entry.kind, factsOf(record)));
  remember(draft, entry, seen, nowMs);
  return { outcome: "stored", event, conflict };
}

/** What a record knows, as evidence of its calls too. */
export function factsOf({ operations, holds, folded }: PaymentRecord): Facts<StoredOperation> {
  return { operations, held: holds.length > 0, folded };
}

/** How long a record is kept after its last event, at least, in milliseconds. */
export function keptFor({ retentionMs }: Pick<Ages, "retentionMs">): number {
  return 2 * retentionMs;
}

/** The draft's record, without what is forgotten. */
export function recordOf({ nowMs, ages }: Change, draft: Draft): PaymentRecord {
  draft.value ??= newRecord();
  const record = draft.value as PaymentRecord;
  if (isForgotten(record, nowMs, ages)) {
    for (const { n } of record.operations) draft.attachments.set(`e${n}`, undefined);
    Object.assign(record, { operations: [], holds: [], folded: 0, last: "", lastMs: 0 });
    delete record.firstSeen;
  }
  return record;
}

/**
 * What is known of operations is forgotten two retentions after the last event, unless a call is open:
 * with it, the note that its payment is a hold would be forgotten.
 */
export function isForgotten({ lastMs, calls }: PaymentRecord, nowMs: number, ages: Ages): boolean {
  return lastMs > 0 && calls.length === 0 && lastMs < nowMs - keptFor(ages);
}

/**
 * Where an equal entry came from before: `c` a callback, `o` an answer, empty: there was none. A
 * callback repeats an earlier callback with the same body or the same identity. A response or a
 * reconciliation repeats any earlier entry with the same identity.
 */
function seenOf({ nowMs, ages }: Change, draft: Draft, { identity, digest }: Entry) {
  const sourceOf = (name: string) => {
    const [of = "", atMs] = draft.flag(name).split(" ");
    return Number(atMs) >= nowMs - ages.retentionMs ? of : "";
  };
  return {
    identity: sourceOf(`i${shortened(identity)}`),
    body: digest === undefined ? "" : sourceOf(`b${shortened(digest)}`),
  };
}

function remember(
  draft: Draft,
  { source, identity, digest }: Entry,
  seen: ReturnType<typeof seenOf>,
  nowMs: number,
): void {
  if (source === EventSource.CALLBACK) {
    draft.flags.set(`i${shortened(identity)}`, `c ${nowMs}`);
    if (digest !== undefined) draft.flags.set(`b${shortened(digest)}`, `c ${nowMs}`);
  } else if (seen.identity === "") {
    draft.flags.set(`i${shortened(identity)}`, `o ${nowMs}`);
  }
}

/** 96 bits tell the entries of one external_id apart. */
function shortened(digest: string): string {
  return digest.slice(0, 16);
}

import { create } from "@bufbuild/protobuf";
import { callOutcomeEntry, stateOfCall } from "../events/call-outcome.ts";
import { paymentEntry } from "../events/entry.ts";
import type { Entry, EventLog, Snapshot } from "../events/log.ts";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { CallOutcome, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentOperation, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../model/kinds.ts";
import { boundedId } from "../redis/bounded-id.ts";
import { type Evidence, evidenceOf, isNamed, isOperationOf } from "./evidence.ts";
import { type Intent, type IntentStore, isUnknown } from "./store.ts";

export interface CallStores {
  readonly log: EventLog;
  readonly intents: IntentStore;
}

/** A call that is open, with what the log says about it. */
export interface OpenCall {
  readonly intent: Intent;
  readonly evidence: Evidence | undefined;
  /** The log has the operation that the call made: its answer was written there. */
  readonly isRecorded: boolean;
  /** The last published outcome of the call is UNKNOWN or NEEDS_OPERATOR. */
  readonly isPublishedUnknown: boolean;
}

/** All calls for an external_id that are open, and what the log says about it. */
export interface OpenCalls {
  readonly openCalls: readonly OpenCall[];
  /** Without the calls whose outcome the events show: nothing more is expected of these. */
  readonly snapshot: Snapshot | undefined;
}

/** All calls for an external_id that are open, and the state of their payment or payout. */
export async function openCallsOf(
  { log, intents }: CallStores,
  account: string,
  kind: Kind,
  externalId: string,
): Promise<OpenCalls> {
  // Read before the events: a call that is settled in between shows in the events.
  const open = await intents.open(account, kind, externalId);
  const snapshot = await log.snapshot(account, kind, externalId);
  const openCalls = open.map((intent) => ({
    intent,
    evidence: evidenceOf(intent, open, snapshot),
    isRecorded:
      isNamed(intent) &&
      snapshot?.states.some(
        // A confirmation has the id of the payment that it confirms.
        (state) => state.subjectId === intent.subjectId && isOperationOf(intent.method, state),
      ) === true,
    isPublishedUnknown: stateOfCall(snapshot, intent.id)?.rank === 1,
  }));
  return { openCalls, snapshot: snapshot && withoutExplained(snapshot, openCalls) };
}

function withoutExplained(snapshot: Snapshot, openCalls: readonly OpenCall[]): Snapshot {
  const explained = new Set(
    openCalls.filter(({ evidence }) => evidence).map(({ intent }) => intent.id),
  );
  const isLeft = ({ subjectId }: { readonly subjectId: string }) => !explained.has(subjectId);
  const { states, facts } = snapshot;
  return {
    ...snapshot,
    states: states.filter(isLeft),
    facts: { ...facts, operations: facts.operations.filter(isLeft) },
  };
}

/** The flags that callers see about the open calls for an external_id. */
export function outcomeFlags(openCalls: readonly OpenCall[]): {
  outcomeUnknown: boolean;
  needsOperator: boolean;
} {
  const unexplained = openCalls.filter(({ evidence }) => !evidence);
  return {
    // An answer that could not be written to the log counts like one that never came.
    outcomeUnknown: unexplained.some(({ isRecorded }) => !isRecorded),
    needsOperator: unexplained.some(({ intent }) => intent.needsOperator),
  };
}

/**
 * Ends an intent if the events of its external_id show what became of it, and notifies watchers. A
 * running call ends only with the end of what it made: its process may be dead, or its own answer
 * comes later and is recorded then.
 * @returns `settled` if it needs no more looks, `arrived` if it goes on as a pending one
 */
export async function settleByEvents(
  { log, intents }: CallStores,
  account: string,
  { intent, evidence, isPublishedUnknown }: OpenCall,
): Promise<"settled" | "arrived" | undefined> {
  const isRunning = intent.state === "running" && !isUnknown(intent, intents.nowMs(account));
  if (isRunning && evidence?.kind !== "settled") return undefined;
  // A pending call has its answer, which may have come after the call was published as UNKNOWN.
  const isKnownNow = intent.state === "pending" ? isPublishedUnknown : evidence !== undefined;
  if (isKnownNow) {
    const isShown = evidence !== undefined;
    await log.append(account, callOutcomeEntry(intent, CallOutcome.SETTLED, isShown));
  }
  if (!evidence) return undefined;
  const { kind, ...rest } = evidence;
  await intents.end(
    account,
    intent,
    "subjectId" in rest
      ? { ...rest, state: "pending", key: "keep" }
      : { ...rest, state: "closed", key: "keep" },
  );
  return kind;
}

/**
 * Settles the calls of unknown outcome for an external_id that the service reports as already paid:
 * one of them must have paid it.
 * @param intent the call that got this answer
 * @param said the Error object that says so; it may name the payment
 */
export async function settleAsPaid(
  stores: CallStores,
  account: string,
  { kind, externalId }: Intent,
  said: AlreadyPaid,
): Promise<void> {
  const now = stores.intents.nowMs(account);
  const look = async () => {
    const { openCalls, snapshot } = await openCallsOf(stores, account, kind, externalId);
    const open = openCalls.filter(
      ({ intent }) => intent.method === "CreatePayment" && isUnknown(intent, now),
    );
    return { open, snapshot };
  };
  const known = await look();
  let { open } = known;
  const [first] = open;
  if (!first) return;
  if (!first.evidence) {
    // The Error object may be about a payment that was taken back since, which is no evidence.
    if (known.snapshot && isOfKnown(said, known.snapshot)) return;
    await stores.log.append(account, successEntry(first.intent, said));
    ({ open } = await look());
  }
  for (const openCall of open) await settleByEvents(stores, account, openCall);
}

/** Whether the Error object may be about a payment whose success is in the log. */
function isOfKnown({ paymentId }: AlreadyPaid, { states }: Snapshot): boolean {
  return states.some(
    ({ operation, status, subjectId }) =>
      operation === "payment" &&
      status === "success" &&
      (!paymentId || subjectId === boundedId(paymentId)),
  );
}

type AlreadyPaid = Pick<UpstreamError, "code" | "paymentId">;

/** A success of a payment about which nothing else is known. */
function successEntry({ id, externalId }: Intent, { paymentId, code }: AlreadyPaid): Entry {
  const payment = create(PaymentSchema, {
    externalId,
    ...(paymentId && { id: paymentId }),
    isSuccess: true,
    operation: PaymentOperation.PAYMENT,
    details: {
      status: PaymentStatus.SUCCESS,
      ...(code && { statusCode: code }),
      ...(paymentId && { paymentId }),
    },
  });
  const subject = paymentId || id;
  const source = EventSource.RECONCILIATION;
  const entry = paymentEntry({ ...payment, id: subject }, { source });
  if (!entry) throw new Error("an entry needs an external_id");
  entry.event.resource = { case: "payment", value: payment };
  if (!paymentId) delete entry.event.paymentId;
  return entry;
}

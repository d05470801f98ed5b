import { create } from "@bufbuild/protobuf";
import { callOutcomeEntry } from "../events/call-outcome.ts";
import { paymentEntry } from "../events/entry.ts";
import type { Entry, EventLog, Snapshot } from "../events/log.ts";
import { CallOutcome, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentOperation, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { evidenceOf } from "./evidence.ts";
import { type Intent, type IntentStore, isUnknown } from "./store.ts";

export interface Books {
  readonly log: EventLog;
  readonly intents: IntentStore;
}

/**
 * Ends an intent that is not running any more, as far as the events of its external_id tell what
 * became of it, and tells those who watch. @returns whether it needs to be looked at no longer, or
 * `arrived`: it goes on as a pending one.
 */
export async function settleByEvents(
  { log, intents }: Books,
  account: string,
  intent: Intent,
  snapshot: Snapshot | undefined,
): Promise<"settled" | "arrived" | undefined> {
  if (intent.state === "running" && !isUnknown(intent, Date.now())) return undefined;
  const evidence = evidenceOf(intent, snapshot);
  if (!evidence) return undefined;
  if (intent.state !== "pending") {
    await log.append(account, callOutcomeEntry(intent, CallOutcome.SETTLED));
  }
  if (evidence.kind === "settled") {
    await intents.end(account, intent, { state: "closed", key: "keep" });
  } else {
    const { subjectId } = evidence;
    await intents.end(account, intent, { state: "pending", subjectId, key: "keep" });
  }
  return evidence.kind;
}

/** The service's word that an external_id has its successful payment. */
export const alreadyPaid = "transaction_already_paid";

/**
 * Settles the calls of unknown outcome for an external_id of which the service says that it is paid:
 * after doubt, that means that one of them paid it.
 * @param intent the call that was told so
 * @param paymentId the payment that the service named, or empty
 */
export async function settleAsPaid(
  books: Books,
  account: string,
  { kind, externalId }: Intent,
  paymentId: string,
): Promise<void> {
  const now = Date.now();
  const open = (await books.intents.open(account, kind, externalId)).filter(
    (intent) => intent.method === "CreatePayment" && isUnknown(intent, now),
  );
  const [doubtful] = open;
  if (!doubtful) return;
  let snapshot = await books.log.snapshot(account, kind, externalId);
  if (!evidenceOf(doubtful, snapshot)) {
    await books.log.append(account, paidEntry(doubtful, paymentId));
    snapshot = await books.log.snapshot(account, kind, externalId);
  }
  for (const intent of open) await settleByEvents(books, account, intent, snapshot);
}

/** The success of a payment of which no more is known than that it was one. */
function paidEntry({ id, externalId }: Intent, paymentId: string): Entry {
  const payment = create(PaymentSchema, {
    externalId,
    ...(paymentId && { id: paymentId }),
    isSuccess: true,
    operation: PaymentOperation.PAYMENT,
    details: {
      status: PaymentStatus.SUCCESS,
      statusCode: alreadyPaid,
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

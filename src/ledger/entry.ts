import { hash } from "node:crypto";
import { create, type DescEnum, type MessageInitShape } from "@bufbuild/protobuf";
import { EventKind, EventSchema, EventSource } from "../gen/payments/v1/event_pb.ts";
import {
  type Payment,
  PaymentOperation,
  PaymentOperationSchema,
  PaymentSchema,
  PaymentStatus,
  PaymentStatusSchema,
} from "../gen/payments/v1/payment_pb.ts";
import type { Payout } from "../gen/payments/v1/payout_pb.ts";
import { boundedId } from "../model/bounded-id.ts";
import type { Kind } from "../model/kinds.ts";
import { endOf } from "../model/payout-statuses.ts";
import { unreadFieldsOf, unrecognizedIn } from "../model/unrecognized.ts";
import type { AlreadyPaid } from "./intents.ts";
import type { Entry, Rank, Words } from "./log.ts";

export interface EntryOptions {
  readonly source: EventSource;
  /** A callback's raw body. */
  readonly raw?: Uint8Array;
  /** The external_id of the answered request: used if the body has none. */
  readonly externalId?: string;
  /**
   * The operation of the answered call: used if the body names none, or one outside the contract,
   * whose word is kept all the same.
   * Without it, a body that names no operation counts as a payment.
   */
  readonly operation?: PaymentOperation;
  /** Whether the payment was made with `confirm: false`; absent if this gateway did not make it. */
  readonly held?: boolean;
  /** The id of the answered call; it is the `attempt` of an answer that names no payment. */
  readonly call?: string;
  /**
   * Stands in for a missing operation_id, to distinguish final states of one operation, and for the
   * name of the payment in the entry of an end.
   */
  readonly attempt?: string;
}

/**
 * The log entry for a payment transaction. Undefined if the transaction does not say which payment
 * it is about: it lacks an external_id, or all of payment_id, id and transaction_id.
 */
export function paymentEntry(payment: Payment, options: EntryOptions): Entry | undefined {
  const { details, externalId } = payment;
  const { paymentId, transactionId, operationId, statusCode, amount, currency } = details ?? {};
  const operation = operationName(payment, options.operation);
  const given = statusNames[details?.status ?? PaymentStatus.UNSPECIFIED] ?? "";
  const isKnown = !isStatusUnknown(payment);
  // `isSuccess` replaces a status that is absent, but not one that was not understood. While the payer
  // has a page to go to, it says that there is one, and nothing is paid.
  const mayBeShort = given === "" && isKnown && !payment.actionRequired && !payment.action?.value;
  const status = mayBeShort && payment.isSuccess ? "success" : given;
  return entry(options, {
    ...{ kind: EventKind.PAYMENT, externalId, operation, operationId, status, statusCode },
    subjectId: paymentId || payment.id || transactionId,
    rank: !isKnown ? -1 : status === "pending" ? 1 : rankOfEnd(status),
    ...{ fiscalization: fiscalizationOf(payment), amount, currency },
    resource: { case: "payment", value: payment },
  });
}

/**
 * The log entry for a payout transaction. Undefined if it lacks an external_id or a transaction_id.
 * The set of statuses is open: those that do not end it are intermediate, except `init`.
 */
export function payoutEntry(payout: Payout, options: EntryOptions): Entry | undefined {
  const { externalId, transactionId: subjectId, statusCode, currency } = payout;
  const given = payout.status?.toLowerCase() ?? "";
  // Where `success` or `failure`, which the log takes for final, is no end, rename it.
  const status = endOf(payout) ?? (rankOfEnd(given) === 2 ? `step:${given}` : given);
  return entry(options, {
    ...{ kind: EventKind.PAYOUT, externalId, subjectId, operation: "payout", status, statusCode },
    rank: status === "" || status === "init" ? 0 : rankOfEnd(status) || 1,
    ...{ amount: payout.originalAmount, currency },
    resource: { case: "payout", value: payout },
  });
}

/** A success of a payment about which nothing else is known. */
export function successEntry(
  { id, externalId }: { readonly id: string; readonly externalId: string },
  { paymentId, code }: AlreadyPaid,
): Entry {
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
  const source = EventSource.RECONCILIATION;
  const told = paymentEntry(payment, { source, ...(!paymentId && { attempt: id }) });
  if (!told) throw new Error("an entry needs an external_id");
  return told;
}

type Text = "externalId" | "subjectId" | "operationId" | "statusCode" | "amount" | "currency";

interface ReadResource
  extends Pick<Entry, "kind" | "operation" | "status" | "rank">,
    Readonly<Partial<Record<Text, string | undefined>>> {
  readonly fiscalization?: readonly string[];
  readonly resource: { case: "payment"; value: Payment } | { case: "payout"; value: Payout };
}

function entry(options: EntryOptions, read: ReadResource): Entry | undefined {
  const { source, raw, call } = options;
  const externalId = read.externalId || options.externalId;
  const { kind, subjectId = "", operation, status, statusCode = "", rank, resource } = read;
  const { amount = "", currency = "", fiscalization = [] } = read;
  const attempt = options.attempt ?? (subjectId === "" ? call : undefined);
  // That a payment is held must be kept under its name: its callback does not say so.
  const isEnd = rank === 2 && !(status === "success" && options.held);
  if (!externalId || (subjectId === "" && !(attempt && isEnd))) return undefined;
  const event = create(EventSchema, {
    kind,
    externalId,
    ...(subjectId && subjectFields[kind](subjectId)),
    source,
    final: rank === 2 && !isUnknownOperation(operation),
    resource,
  });
  const operationId = read.operationId || (attempt ?? "");
  const bytes = raw && digestOf(raw);
  const identity = [kind, subjectId, operation, operationId, status, statusCode];
  identity.push(...fiscalization);
  // Other words, other events: each names its field, so that none passes for a known value.
  for (const { field, value } of resource.value.unrecognized) {
    if (identityPaths.has(field)) identity.push(`${field}=${value.toLowerCase()}`);
  }
  // Two bodies that differ in unread fields must not count as the same event.
  const isUnread = unreadFieldsOf(resource.value).some((path) => identityPaths.has(path));
  if (bytes && isUnread) identity.push(bytes);
  return {
    event,
    kind,
    source,
    externalId,
    // The event keeps these texts in full. The state serves many events, so its texts are bounded.
    subjectId: boundedId(subjectId),
    operation,
    operationId: boundedId(operationId),
    isAttempt: (!read.operationId && attempt !== undefined) || undefined,
    rank,
    status: boundedId(status),
    statusCode: boundedId(statusCode) || undefined,
    amount: (amount.length <= maxDecimalChars && amount) || undefined,
    currency: boundedId(currency) || undefined,
    words: wordsOf(resource.value),
    held: options.held,
    call,
    digest: bytes,
    identity: digestOf(JSON.stringify(identity)),
  };
}

/** A longer text is no amount. */
const maxDecimalChars = 64;

const subjectFields: Readonly<Record<Kind, (id: string) => MessageInitShape<typeof EventSchema>>> =
  {
    [EventKind.PAYMENT]: (paymentId) => ({ paymentId }),
    [EventKind.PAYOUT]: (transactionId) => ({ transactionId }),
  };

/** Fields that distinguish two callbacks about one payment or payout. */
const identityPaths: ReadonlySet<string> = new Set([
  "operation",
  "details",
  "details.status",
  "details.status_code",
  "details.operation_id",
  "details.fiscalization",
  "details.fiscalization.status",
  "details.fiscalization.status_code",
  "status",
  "status_code",
]);

/** Fields that hold a payment's status. */
const statusPaths: ReadonlySet<string> = new Set(["details", "details.status"]);

/** Status and code of the receipt; empty where there is none. */
function fiscalizationOf({ details }: Payment): readonly string[] {
  const { status = 0, statusCode } = details?.fiscalization ?? {};
  const receipt = [status === 0 ? "" : `${status}`, `${statusCode ?? ""}`];
  return receipt.some((text) => text !== "") ? receipt : [];
}

const statusNames = namesOf(PaymentStatusSchema);
export const operationNames = namesOf(PaymentOperationSchema);

/** The service's word for each value of an enum. */
function namesOf({ values }: DescEnum): Readonly<Record<number, string>> {
  const known = values.filter(({ number }) => number !== 0);
  return Object.fromEntries(known.map((one) => [one.number, one.localName.toLowerCase()]));
}

/** The enum's value of such a word; 0 for a word that the contract does not have. */
export function numberOf<Value extends number>(
  values: Record<string, string | Value>,
  name: string,
): Value {
  return (values[name.toUpperCase()] ?? 0) as Value;
}

/** The name of an operation that the contract does not have; no known name begins like it. */
const otherOperation = "other:";

function operationName(payment: Payment, asked: PaymentOperation | undefined): string {
  // An operation that the contract does not have must not count as the payment itself.
  if (asked === undefined) {
    const word = unrecognizedIn(payment, "operation");
    if (word !== undefined) return `${otherOperation}${word}`;
    if (unreadFieldsOf(payment).includes("operation")) return unreadOperation;
  }
  const given = operationNames[payment.operation];
  return given ?? operationNames[asked ?? PaymentOperation.PAYMENT] ?? "payment";
}

const unreadOperation = "unknown";

function isUnknownOperation(operation: string): boolean {
  return operation === unreadOperation || operation.startsWith(otherOperation);
}

/** Whether the service sent a status that was not understood. */
function isStatusUnknown(payment: Payment): boolean {
  return (
    unrecognizedIn(payment, "details.status") !== undefined ||
    unreadFieldsOf(payment).some((path) => statusPaths.has(path))
  );
}

/** What a payment or payout says of its operation in words that are not known. */
function wordsOf({ unrecognized }: Payment | Payout): Words | undefined {
  const words = unrecognized.filter(({ field }) => operationPaths.has(field));
  return words.length > 0 ? words.map(({ field, value }) => [field, value]) : undefined;
}

const operationPaths: ReadonlySet<string> = new Set(["operation", "details.status"]);

function rankOfEnd(status: string): Rank {
  return status === "success" || status === "failure" ? 2 : 0;
}

function digestOf(data: Uint8Array | string): string {
  return hash("sha256", data, "base64url");
}

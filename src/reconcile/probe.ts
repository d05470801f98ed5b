import { create } from "@bufbuild/protobuf";
import { type ErrorCode, GatewayError } from "../errors.ts";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import { GetOperationRequestSchema } from "../gen/payments/v1/operation_service_pb.ts";
import { type Payment, PaymentOperation, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { ResendCallbackRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import { numberOf, paymentEntry, payoutEntry } from "../ledger/entry.ts";
import { isOperationOf } from "../ledger/evidence.ts";
import type { Intent, SettledBy } from "../ledger/intents.ts";
import type { Entry, OperationState } from "../ledger/log.ts";
import type { Kind } from "../model/kinds.ts";
import { moneyMethods } from "../model/money-methods.ts";
import { unrecognizedIn, unrecognizedValue } from "../model/unrecognized.ts";
import { saysAlreadyPaid, saysNotFound } from "../upstream/error-codes.ts";
import type { SendOptions, Upstream } from "../upstream/upstream.ts";

/** How a call's outcome was looked up. */
export type LookupMethod = Exclude<SettledBy, "event" | "notFound">;

export interface Probed {
  readonly lookupMethod: LookupMethod;
  /**
   * - `learned`: what `told` says;
   * - `asked`: nothing yet; after `resend`, the service's callback may follow;
   * - `notFound`: the service does not know the payment or payout;
   * - `paid`: the service says, in `paid`, that the external_id is paid;
   * - `refused`: the service answered with an error that says nothing about the outcome;
   * - `unreachable`: no answer, or no token of the rate budget: nothing about the call.
   */
  readonly kind: "learned" | "asked" | "notFound" | "paid" | "refused" | "unreachable";
  readonly told?: Entry;
  readonly paid?: UpstreamError;
}

/** The call to look up, and what the look-up needs. */
export interface Lookup {
  readonly upstream: Upstream;
  readonly intent: Intent;
  readonly operations: readonly OperationState[];
  readonly options: SendOptions;
}

/**
 * Asks the service what became of a call, and never moves money: by payout info for payouts; by
 * operation info where the operation's id is known; else by requesting the callback again, for the
 * operation by name, since without a name the service sends the latest operation's (spec,
 * callback/resend).
 */
export const probes: Readonly<Record<Kind, (lookup: Lookup) => Promise<Probed>>> = {
  [EventKind.PAYMENT]: probePayment,
  [EventKind.PAYOUT]: probePayout,
};

async function probePayment({ upstream, intent, operations, options }: Lookup): Promise<Probed> {
  const state = operations.find(
    (state) =>
      state.rank < 2 && state.subjectId === intent.subjectId && isOperationOf(intent.method, state),
  );
  if (intent.state === "pending" && state?.operationId) {
    const probed = await probeOperation(upstream, intent, state, options);
    // Operation info is for alternative payments: the service may not know other payments by it.
    if (probed.kind !== "notFound" && probed.kind !== "refused" && probed.kind !== "asked")
      return probed;
  }
  return await probeByCallback(upstream, intent, options);
}

async function probePayout({ upstream, intent, options }: Lookup): Promise<Probed> {
  const { externalId } = intent;
  const request = create(GetPayoutRequestSchema, { externalId });
  return await asked("payout", async () => {
    const payout = await upstream.getPayout(request, options);
    return payoutEntry(payout, { source: EventSource.RECONCILIATION, externalId });
  });
}

async function probeOperation(
  upstream: Upstream,
  { externalId }: Intent,
  { operationId, event }: OperationState,
  options: SendOptions,
): Promise<Probed> {
  const { resource } = event;
  const request = create(GetOperationRequestSchema, { externalId, operationId });
  return await asked("operation", async () => {
    const operation = await upstream.getOperation(request, options);
    const saysStatus =
      operation.status !== PaymentStatus.UNSPECIFIED ||
      unrecognizedIn(operation, "status") !== undefined;
    if (resource.case !== "payment" || !saysStatus) return undefined;
    // Attempts share their external_id: the end of another one would invite a second payment.
    const named = operation.details?.operationId;
    if (named && named !== operationId) return undefined;
    const payment = withOperation(resource.value, operation);
    return paymentEntry(payment, { source: EventSource.RECONCILIATION, externalId });
  });
}

async function probeByCallback(
  upstream: Upstream,
  { externalId, method }: Intent,
  options: SendOptions,
): Promise<Probed> {
  let probed: Probed = { lookupMethod: "resend", kind: "notFound" };
  // If the service knows none of these operations, it does not know the call.
  for (const name of moneyMethods[method].operations) {
    const operation = numberOf(PaymentOperation, name);
    const request = create(ResendCallbackRequestSchema, { externalId, operation });
    probed = await asked("resend", async () => {
      await upstream.resendCallback(request, options);
      return undefined;
    });
    if (probed.kind !== "notFound") break;
  }
  return probed;
}

async function asked(
  lookupMethod: LookupMethod,
  ask: () => Promise<Entry | undefined>,
): Promise<Probed> {
  try {
    const told = await ask();
    return told ? { lookupMethod, kind: "learned", told } : { lookupMethod, kind: "asked" };
  } catch (error) {
    // Only an Error object is the service's own answer: a bare 404 may come from a proxy.
    if (!(error instanceof GatewayError)) throw error;
    const { upstream } = error.details;
    if (!upstream?.code || noAnswer.has(error.code)) return { lookupMethod, kind: "unreachable" };
    if (saysNotFound(upstream)) return { lookupMethod, kind: "notFound" };
    if (saysAlreadyPaid(upstream)) return { lookupMethod, kind: "paid", paid: upstream };
    return { lookupMethod, kind: "refused" };
  }
}

/** Errors that are not about the call: the next look-up may get an answer. */
const noAnswer: ReadonlySet<ErrorCode> = new Set(["UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL"]);

/**
 * The payment updated from its operation info. Fields that the info lacks stay as they were, except
 * the action, the status code and its description. The payment has its status in `details`.
 */
function withOperation(payment: Payment, operation: Operation): Payment {
  const { action, status, statusCode, statusDescription } = operation;
  const told = { ...payment };
  told.isSuccess = status === PaymentStatus.SUCCESS;
  told.action = action;
  told.actionRequired = operation.actionRequired ?? action !== undefined;
  told.receiptUrl = operation.receiptUrl ?? payment.receiptUrl;
  const { details } = payment;
  if (!details) return told;
  const path = "details.status";
  const words = operation.unrecognized.filter(({ field }) => field === "status");
  told.unrecognized = [
    ...payment.unrecognized.filter(({ field }) => field !== path),
    ...words.map(({ value }) => unrecognizedValue(path, value)),
  ];
  const { processedAt = details.processedAt, authCode = details.authCode } = operation;
  const { bankName = details.bankName } = operation;
  const { rrn = details.rrn } = operation.details ?? {};
  // The old code and its description would contradict the new status.
  const said = { status, statusCode, statusDescription };
  told.details = { ...details, ...said, processedAt, authCode, bankName, rrn };
  return told;
}

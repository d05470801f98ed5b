import { clone, create } from "@bufbuild/protobuf";
import { type ErrorCode, GatewayError } from "../errors.ts";
import { type PayoutEnds, paymentEntry, payoutEntry } from "../events/entry.ts";
import type { Entry, OperationState, Snapshot } from "../events/log.ts";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Operation } from "../gen/payments/v1/operation_pb.ts";
import { GetOperationRequestSchema } from "../gen/payments/v1/operation_service_pb.ts";
import {
  type Payment,
  PaymentOperation,
  PaymentSchema,
  PaymentStatus,
} from "../gen/payments/v1/payment_pb.ts";
import { ResendCallbackRequestSchema } from "../gen/payments/v1/payment_service_pb.ts";
import { GetPayoutRequestSchema } from "../gen/payments/v1/payout_service_pb.ts";
import { operations } from "../intents/evidence.ts";
import type { Intent, MoneyMethod } from "../intents/store.ts";
import type { Kind } from "../model/kinds.ts";
import { saysAlreadyPaid, saysNotFound } from "../upstream/error-codes.ts";
import type { SendOptions, Upstream } from "../upstream/upstream.ts";

/** How something was looked up. */
export type LookupMethod = "operation" | "payout" | "resend";

export type Probed = { readonly lookupMethod: LookupMethod } & (
  | { readonly kind: "learned"; readonly entry: Entry }
  /** The callback is on its way, should there be anything to tell. */
  | { readonly kind: "asked" }
  /** The service does not know it. */
  | { readonly kind: "notFound" }
  /** The service says that the external_id is paid. */
  | { readonly kind: "paid"; readonly said: UpstreamError }
  /** The service answered, and its answer does not help. */
  | { readonly kind: "refused"; readonly error: GatewayError }
  /** There was no answer, or no token: neither says anything about the call. */
  | { readonly kind: "unreachable"; readonly error: unknown }
);

/**
 * Asks the service once what became of a call, by the look-up method for it: payout info for
 * payouts, operation info where the operation's id is known, else another callback, naming the
 * operation: without that it would be the latest one's (spec, callback/resend). It never moves money.
 */
export async function probe(lookup: Lookup): Promise<Probed> {
  return await lookups[lookup.intent.kind].probe(lookup);
}

/** What is asked about, and how. */
export interface Lookup {
  readonly upstream: Upstream;
  readonly intent: Intent;
  readonly snapshot: Snapshot | undefined;
  readonly options: SendOptions;
  readonly payoutEnds?: PayoutEnds | undefined;
}

/** Whether the answer to a look-up comes as a callback. */
export function answersByCallback(kind: Kind): boolean {
  return lookups[kind].answersByCallback;
}

const lookups: Readonly<
  Record<Kind, { probe(lookup: Lookup): Promise<Probed>; readonly answersByCallback: boolean }>
> = {
  [EventKind.PAYMENT]: { probe: probePayment, answersByCallback: true },
  [EventKind.PAYOUT]: { probe: probePayout, answersByCallback: false },
};

async function probePayment({ upstream, intent, snapshot, options }: Lookup): Promise<Probed> {
  const state = snapshot?.states.find(
    ({ subjectId, operation }) =>
      subjectId === intent.subjectId && operations[intent.method].includes(operation),
  );
  if (intent.state === "pending" && state?.operationId) {
    const probed = await probeOperation(upstream, intent, state, options);
    // This look-up is for alternative payments: of others the service may know nothing.
    if (probed.kind !== "notFound" && probed.kind !== "refused") return probed;
  }
  return await probeByCallback(upstream, intent, options);
}

async function probePayout({ upstream, intent, options, payoutEnds }: Lookup): Promise<Probed> {
  const { externalId } = intent;
  const request = create(GetPayoutRequestSchema, { externalId });
  return await asked("payout", async () => {
    const payout = await upstream.getPayout(request, options);
    return payoutEntry(payout, { source: EventSource.RECONCILIATION, externalId }, payoutEnds);
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
    if (resource.case !== "payment" || operation.status === PaymentStatus.UNSPECIFIED) {
      return undefined;
    }
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
  for (const operation of resendOperations[method]) {
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
    const entry = await ask();
    return entry ? { lookupMethod, kind: "learned", entry } : { lookupMethod, kind: "asked" };
  } catch (error) {
    // Only the service itself can say that it knows nothing: a bare 404 may be a proxy's.
    if (!(error instanceof GatewayError)) throw error;
    const { upstream } = error.details;
    if (!upstream?.code || noAnswer.has(error.code))
      return { lookupMethod, kind: "unreachable", error };
    if (saysNotFound(upstream)) return { lookupMethod, kind: "notFound" };
    if (saysAlreadyPaid(upstream)) return { lookupMethod, kind: "paid", said: upstream };
    return { lookupMethod, kind: "refused", error };
  }
}

/** What has nothing to do with the call that was asked about: it may be otherwise soon. */
const noAnswer: ReadonlySet<ErrorCode> = new Set(["UNAVAILABLE", "RESOURCE_EXHAUSTED", "INTERNAL"]);

/** What a call may go by, in the order of likelihood: it is not known if it is by none of them. */
const resendOperations: Readonly<Record<MoneyMethod, readonly PaymentOperation[]>> = {
  CreatePayment: [PaymentOperation.PAYMENT],
  CreateRecurrentPayment: [PaymentOperation.RECURRENT, PaymentOperation.PAYMENT],
  ConfirmPayment: [PaymentOperation.CONFIRM],
  // Looked up by payout info.
  RequestPayout: [],
};

/** A payment as its operation info tells it: what that does not tell stays as it was. */
function withOperation(payment: Payment, operation: Operation): Payment {
  const result = clone(PaymentSchema, payment);
  result.isSuccess = operation.status === PaymentStatus.SUCCESS;
  if (operation.action) result.action = operation.action;
  else delete result.action;
  result.actionRequired = operation.actionRequired ?? operation.action !== undefined;
  if (operation.receiptUrl !== undefined) result.receiptUrl = operation.receiptUrl;
  const { details } = result;
  if (!details) return result;
  details.status = operation.status;
  if (operation.processedAt) details.processedAt = operation.processedAt;
  const rrn = operation.details?.rrn;
  const { statusCode, statusDescription, authCode, bankName } = operation;
  // The old code and its description would belie the new status.
  delete details.statusCode;
  delete details.statusDescription;
  const texts = { statusCode, statusDescription, authCode, bankName, rrn };
  for (const [name, text] of Object.entries(texts)) {
    if (text !== undefined) details[name as keyof typeof texts] = text;
  }
  return result;
}

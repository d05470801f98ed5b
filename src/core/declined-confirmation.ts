import { create } from "@bufbuild/protobuf";
import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentOperation, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { currentState } from "../ledger/current.ts";
import { paymentEntry } from "../ledger/entry.ts";
import type { Intent } from "../ledger/intents.ts";
import type { Entry } from "../ledger/log.ts";
import type { Context } from "./context.ts";

/**
 * The event of a confirmation that the service declined with an Error object. It is one of
 * the payment's operations, and the service sends callbacks for declined payments, but not for
 * declined confirmations (spec, Events). If the Error object names no payment, the event is about
 * the payment that succeeded. Never throws.
 */
export async function declinedConfirmation(
  context: Context,
  account: string,
  { id: attempt, externalId }: Intent,
  said: UpstreamError,
): Promise<Entry | undefined> {
  const paymentId = said.paymentId || (await successOf(context, account, externalId));
  const payment = create(PaymentSchema, {
    externalId,
    isSuccess: false,
    operation: PaymentOperation.CONFIRM,
    details: {
      ...(paymentId && { paymentId }),
      status: PaymentStatus.FAILURE,
      ...(said.code && { statusCode: said.code }),
      ...(said.message && { statusDescription: said.message }),
    },
  });
  return paymentEntry(payment, { source: EventSource.RESPONSE, attempt });
}

async function successOf(
  { log }: Context,
  account: string,
  externalId: string,
): Promise<string | undefined> {
  const reading = log.snapshot(account, EventKind.PAYMENT, externalId);
  // If the log is out of reach, the event could not be appended either.
  const snapshot = await reading.catch(() => undefined);
  const current = snapshot && currentState(snapshot);
  return current?.status === "success" ? current.event.paymentId : undefined;
}

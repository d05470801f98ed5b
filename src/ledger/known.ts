import { create } from "@bufbuild/protobuf";
import { EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentOperation, PaymentSchema, PaymentStatus } from "../gen/payments/v1/payment_pb.ts";
import { boundedId } from "../redis/keys.ts";
import { factsOf } from "./entries.ts";
import { paymentEntry } from "./entry.ts";
import type { Known } from "./evidence.ts";
import type { AlreadyPaid } from "./intents.ts";
import type { Entry } from "./log.ts";
import type { PaymentRecord } from "./record.ts";

/** What a record knows, as evidence of its calls. */
export function knownOf(record: PaymentRecord): Known {
  const states = record.states.map(({ key, place, ...state }) => {
    const [subjectId = "", operation = ""] = JSON.parse(key) as string[];
    return { ...state, subjectId, operation, event: { cursor: place } };
  });
  return { states, facts: factsOf(record) };
}

/** Whether the Error object may be about a payment whose success is on record. */
export function isOfKnown({ paymentId }: AlreadyPaid, record: PaymentRecord): boolean {
  return knownOf(record).states.some(
    ({ operation, status, subjectId }) =>
      operation === "payment" &&
      status === "success" &&
      (!paymentId || subjectId === boundedId(paymentId)),
  );
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
  const subject = paymentId || id;
  const source = EventSource.RECONCILIATION;
  const entry = paymentEntry({ ...payment, id: subject }, { source });
  if (!entry) throw new Error("an entry needs an external_id");
  entry.event.resource = { case: "payment", value: payment };
  if (!paymentId) delete entry.event.paymentId;
  return entry;
}

import { isUtf8 } from "node:buffer";
import { type PayoutEnds, paymentEntry, payoutEntry } from "../events/entry.ts";
import type { Entry } from "../events/log.ts";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../gen/payments/v1/payment_pb.ts";
import { PayoutSchema } from "../gen/payments/v1/payout_pb.ts";
import { decode, WireError, type WireFault } from "../wire/wire.ts";

/** What the path of a callback says that it is about. */
export type CallbackKind = typeof EventKind.PAYMENT | typeof EventKind.PAYOUT;

/** What a verified body means: an entry for the log, or why it means nothing. */
export type ParsedCallback = { readonly entry: Entry } | UnparsedCallback;

export interface UnparsedCallback {
  readonly entry?: undefined;
  /** Never holds a part of the body. */
  readonly reason: string;
  /** What reading the body stumbled over, when that is a fault of ours. */
  readonly error?: unknown;
}

/**
 * Reads a callback's body. `onFault` is told of each field that was not read as it stood. Never
 * throws: what cannot be read for whatever reason can be kept and read again later.
 */
export function parseCallback(
  kind: CallbackKind,
  raw: Uint8Array,
  onFault: (fault: WireFault) => void = () => {},
  payoutEnds?: PayoutEnds,
): ParsedCallback {
  if (!isUtf8(raw)) return { reason: "the body is not UTF-8" };
  const unread: string[] = [];
  const tell = {
    onFault(fault: WireFault) {
      unread.push(fault.path);
      onFault(fault);
    },
  };
  const options = { source: EventSource.CALLBACK, raw, unread };
  try {
    const text = new TextDecoder().decode(raw);
    const entry =
      kind === EventKind.PAYMENT
        ? paymentEntry(decode(PaymentSchema, text, tell), options)
        : payoutEntry(decode(PayoutSchema, text, tell), options, payoutEnds);
    return entry ? { entry } : { reason: missing[kind] };
  } catch (error) {
    if (error instanceof WireError) return { reason: error.message };
    return { reason: "the body could not be read", error };
  }
}

const missing = {
  [EventKind.PAYMENT]: "external_id, or each of details.payment_id, id, transaction_id, is missing",
  [EventKind.PAYOUT]: "external_id or transaction_id is missing",
};

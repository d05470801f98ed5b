import { isUtf8 } from "node:buffer";
import { EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../gen/payments/v1/payment_pb.ts";
import { type EntryOptions, paymentEntry, payoutEntry } from "../ledger/entry.ts";
import type { Entry } from "../ledger/log.ts";
import type { Kind } from "../model/kinds.ts";
import { decodePayout } from "../wire/payout.ts";
import { type DecodeOptions, decode, WireError } from "../wire/wire.ts";

/**
 * The result of parsing a verified body: an entry for the log, or why there is none. `reason` never
 * contains a part of the body; `error` is what parsing threw, if it is a defect of the gateway.
 */
export interface ParsedCallback {
  readonly entry?: Entry;
  readonly reason?: string;
  readonly error?: unknown;
}

/**
 * Parses a callback's body. Calls `onFault` for each field that could not be read exactly as sent.
 * Never throws: a body that cannot be parsed can be stored and parsed again later.
 */
export function parseCallback(
  kind: Kind,
  raw: Uint8Array,
  decoding: DecodeOptions = {},
): ParsedCallback {
  if (!isUtf8(raw)) return { reason: "the body is not UTF-8" };
  const options = { source: EventSource.CALLBACK, raw };
  const { entryOf, missing } = resources[kind];
  try {
    const text = utf8.decode(raw);
    const entry = entryOf(text, decoding, options);
    return entry ? { entry } : { reason: missing };
  } catch (error) {
    if (error instanceof WireError) return { reason: error.message };
    return { reason: "the body could not be read", error };
  }
}

const utf8 = new TextDecoder();

interface CallbackResource {
  entryOf(text: string, decoding: DecodeOptions, options: EntryOptions): Entry | undefined;
  /** Names the fields without which there is no entry. */
  readonly missing: string;
}

const resources: Readonly<Record<Kind, CallbackResource>> = {
  [EventKind.PAYMENT]: {
    entryOf: (text, decoding, options) =>
      paymentEntry(decode(PaymentSchema, text, decoding), options),
    missing: "external_id, or each of details.payment_id, id, transaction_id, is missing",
  },
  [EventKind.PAYOUT]: {
    entryOf: (text, decoding, options) => payoutEntry(decodePayout(text, decoding), options),
    missing: "external_id or transaction_id is missing",
  },
};

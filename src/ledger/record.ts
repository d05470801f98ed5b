import { GatewayError } from "../errors.ts";
import { type Kind, kindNamed, kinds } from "../model/kinds.ts";
import type { MoneyMethod } from "../model/money-methods.ts";
import type { OpenCall } from "./intents.ts";
import type { PlacedFact, Topic } from "./log.ts";

/**
 * All that is known of one payment or payout of an account: its operations, its open calls, and what
 * tells repeats apart. Everything that happens to an external_id is one change of this record. It is
 * stored as JSON. Members that this version does not know stay as they are, so that a later version
 * may add some while both run. Times are in milliseconds since the epoch on the store's clock; places
 * are cursors without their epoch.
 */
export interface PaymentRecord {
  operations: StoredOperation[];
  holds: string[];
  /** How many failures were left out of `operations`. */
  folded: number;
  /** Place of the newest event; empty while there is none. */
  last: string;
  /** Calls that move money and are not settled, the oldest first. */
  calls: OpenCall[];
  /** Ids of the calls that ended last: a delayed request must not begin them again. */
  over: readonly string[];
  /** Marks (evidence.ts) of attempts that other calls account for, the newest last. */
  marks: string[];
  /** How often the record was changed; numbers its operations. */
  changes: number;
  /** The index that lists it (listing.ts); absent while nothing is known of it. */
  index?: string;
  /** When it was first heard of, in microseconds; text, since the store fills it in. */
  firstSeen?: string;
}

/** What is known of one operation, and where its events are. */
export type StoredOperation = { -readonly [Name in keyof PlacedFact]: PlacedFact[Name] } & {
  /** Number of the operation within the record: its newest event is the attachment `e<n>`. */
  n: number;
};

/** One use of an `Idempotency-Key`. Its answer is the attachment `answer`. */
export interface KeyRecord {
  fingerprint: string;
  method: MoneyMethod;
  callId: string;
  startedAt: string;
  leaseMs: number;
  state: "running" | "unknown" | "done";
}

export function newRecord(): PaymentRecord {
  return {
    operations: [],
    holds: [],
    folded: 0,
    last: "",
    calls: [],
    over: [],
    marks: [],
    changes: 0,
  };
}

/** The key of the record of a payment or payout; its events have it as their topic. */
export function recordKey(kind: Kind, externalId: string): string {
  return `${kinds[kind].name}:${externalId}`;
}

/** The key of the record that a topic is of; undefined for that of all events. */
export function keyOfTopic(topic: Topic): string | undefined {
  return topic && recordKey(topic.kind, topic.externalId);
}

/** The payment or payout that a record is of. */
export function ofRecordKey(key: string): { readonly kind: Kind; readonly externalId: string } {
  const at = key.indexOf(":");
  const kind = kindNamed(key.slice(0, at));
  if (kind === undefined) throw new UnreadableRecord(key);
  return { kind, externalId: key.slice(at + 1) };
}

/**
 * A stored record that this gateway does not understand: damaged, or of a newer gateway. No step was
 * made on it, and it concerns this payment or payout alone.
 */
export class UnreadableRecord extends GatewayError {
  readonly key: string;

  constructor(key: string, cause?: unknown) {
    super("INTERNAL", `the stored record of ${key} cannot be read`, { cause });
    this.key = key;
  }
}

/** Goes on after a record that cannot be read, since it concerns no other one. Throws all else. */
export function passOver(error: unknown): undefined {
  if (!(error instanceof UnreadableRecord)) throw error;
}

/** Undefined for an empty text, which says nothing. */
export function recordIn(text: string): PaymentRecord | undefined {
  return text === "" ? undefined : JSON.parse(text);
}

/** The key of the record of an `Idempotency-Key`. */
export function keyRecordKey(digest: string): string {
  return `key:${digest}`;
}

/** Whether a record says nothing, so that it need not be stored. */
export function isBlank(value: unknown): boolean {
  return value === undefined || (value as Partial<PaymentRecord>).changes === 0;
}

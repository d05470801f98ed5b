import type { UpstreamError } from "../gen/payments/v1/error_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { MoneyMethod } from "../model/money-methods.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { Entry, Facts, OperationState, PlacedFact } from "./log.ts";

/**
 * The intent of a call: the record that is stored before the call is sent. It holds no card data,
 * and nothing of the request except its external_id.
 */
export interface NewIntent {
  /** Unique; writes for another id do not change this intent. */
  readonly id: string;
  readonly method: MoneyMethod;
  readonly kind: Kind;
  readonly externalId: string;
  /** The lease: longest time until this process ends the call. After that its replica is gone. */
  readonly leaseMs: number;
  /** The call is about to make a payment with `confirm: false`. */
  readonly hold?: boolean;
  readonly key?: KeyUse;
  /** `traceparent` of the span that makes it; undefined if it is not traced. */
  readonly trace?: string | undefined;
}

/** One use of an `Idempotency-Key`. */
export interface KeyUse {
  /** Digest of account and key: a key that was used with one method is used for all. */
  readonly digest: string;
  /**
   * Keyed hashes of the request, one per accepted password, the current one first: they tell
   * another request apart, and reveal nothing of its content.
   */
  readonly fingerprints: readonly string[];
}

/**
 * How far a call has come:
 * - `running`: begun and not ended; once its lease is over, its outcome is unknown;
 * - `unknown`: sent, and no answer was understood;
 * - `pending`: answered, but what it made is not at its end, or the answer is not in the log yet.
 */
export type IntentState = "running" | "unknown" | "pending";

/** A call that moves money and is not settled, in the record of its payment or payout (record.ts). */
export interface OpenCall extends Pick<NewIntent, "id" | "method" | "leaseMs" | "hold" | "trace"> {
  state: IntentState;
  /** In milliseconds since the epoch, on the store's clock: text, since the store fills it in. */
  startedAt: string;
  /** The payment_id or transaction_id of a pending call; empty if not known. */
  subjectId: string;
  /** How often the call was looked up, and how often in a row the service did not know it. */
  checks: number;
  notFound: number;
  /** Given up: an operator has to look. */
  needsOperator: boolean;
  readonly keyDigest: string;
  /** When it is looked at next, unless it was given up; on the store's clock. */
  dueMs: number;
  /**
   * Place of the newest event that its record had when it began: what is behind that came after it,
   * whatever the clocks of stores that took over say. Absent if the store did not see it begin.
   */
  after?: string;
}

/** Names a payment or payout of an account. */
export type About = Pick<NewIntent, "kind" | "externalId">;

/** An open call, with what its record says beside it. */
export interface Intent extends Readonly<OpenCall>, About {
  readonly startedAtMs: number;
  /** The call as this process began it: what the store lost of it is stored again. */
  readonly given?: NewIntent;
}

/**
 * - `started`: the call may be sent, but not once its lease is over;
 * - `inFlight`: another call of the method has no understood answer yet for the external_id;
 * - `keyReused`: the key was used for another request;
 * - `keyRunning`, `keyUnknown`, `keyAnswered`: its first call has no answer yet, an unknown outcome, or
 *   this answer.
 */
export type Begun =
  | { readonly kind: "started"; readonly intent: Intent }
  | { readonly kind: "inFlight" | "keyReused" | "keyRunning" | "keyUnknown" }
  | { readonly kind: "keyAnswered"; readonly answer: Buffer };

/**
 * What became of a call. An unknown outcome is stored under the call's key, too. `mark` is added to
 * the marks of the external_id.
 */
export type Ending =
  /** The call was never sent, or is over. */
  | {
      readonly state: "closed";
      readonly mark?: string;
      readonly key: KeyEnding;
      /** The service refused it, since the external_id is paid. */
      readonly paid?: AlreadyPaid | undefined;
    }
  | {
      readonly state: "pending";
      /** Empty when the answer did not name its payment or payout. */
      readonly subjectId: string;
      /** Default: `subjectId`, unless that is empty. */
      readonly mark?: string;
      readonly key: KeyEnding;
    }
  | { readonly state: "unknown" };

/** The Error object that says so; it may name the payment. */
export type AlreadyPaid = Pick<UpstreamError, "code" | "paymentId">;

/** What becomes of the call's key: free again, left as it is, or stored with this sealed answer. */
export type KeyEnding = "free" | "keep" | Buffer;

/**
 * What a look at a call found out, when the call is looked at next, and the counts of the looks so
 * far.
 */
export interface Look extends Pick<Intent, "checks" | "notFound"> {
  readonly inMs: number;
  readonly told?: Entry | undefined;
  /** The service says that the external_id is paid. */
  readonly paid?: AlreadyPaid | undefined;
  /** The service does not have the call, and will not get it any more. */
  readonly neverArrived?: boolean;
  /** What found it out. Default: what a look before asked for, or an event. */
  readonly by?: SettledBy | undefined;
}

/**
 * What settled a call: an event that no look asked for (`event`), a look, or repeated NOT_FOUND
 * answers (`notFound`).
 */
export type SettledBy = "event" | "operation" | "payout" | "resend" | "notFound";

/**
 * What is known of an external_id at one instant, as evidence of its calls (evidence.ts): a record says
 * it, and what is read of one.
 */
export interface Evidence extends Facts<PlacedFact> {
  /** All of its open calls. */
  readonly calls: readonly OpenCall[];
  /** Marks of attempts that calls account for, whether these are open still or not. */
  readonly marks: readonly string[];
}

/** All that is known of an external_id, as it is at one instant. */
export interface Known extends Evidence {
  readonly operations: readonly OperationState[];
  readonly calls: readonly Intent[];
  /** How many failures were left out of its operations. */
  readonly folded: number;
  /** Reading after it yields exactly the later events; empty while there is no event. */
  readonly cursor: Cursor;
  /** As in `Listed`; undefined if it is not listed. */
  readonly firstSeen?: number | undefined;
  /** When the newest event was stored or the newest call began, in milliseconds since the epoch. */
  readonly updatedMs: number;
}

export const nothingKnown: Known = {
  ...{ operations: [], holds: [], folded: 0, calls: [], marks: [] },
  ...{ cursor: "", updatedMs: 0 },
};

/** How long what is known of payments and payouts counts, in milliseconds. */
export interface Ages {
  /** How long events can be read again and repeats are recognised. */
  readonly retentionMs: number;
  /** RECONCILE_AFTER: when an intent of unknown or pending outcome is first looked at. */
  readonly firstLookMs: number;
  /** RECONCILE_GIVE_UP. */
  readonly giveUpMs: number;
  /** When locks end though nobody gives their calls up. Default: never. */
  readonly locksMs?: number | undefined;
}

/** How long an `Idempotency-Key` is remembered. */
export const keyRetentionMs = 24 * 3_600_000;

/** Whether it is unknown what became of a call: no answer came, or its replica is gone. */
export function isUnknown(
  { state, startedAt, leaseMs }: Pick<OpenCall, "startedAt" | "leaseMs"> & { state: string },
  nowMs: number,
): boolean {
  return state === "unknown" || (state === "running" && Number(startedAt) + leaseMs <= nowMs);
}

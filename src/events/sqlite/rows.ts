import type { EventKind } from "../../gen/payments/v1/event_pb.ts";
import type { PaymentState } from "../../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../../model/kinds.ts";
import type { StoredFact } from "../facts.ts";
import type { Appended, OperationState } from "../log.ts";

/**
 * Data that the log and its operations in the store's thread exchange. Places are cursors without
 * their epoch. Bytes are those of stored-event.ts: the thread decrypts nothing.
 */

/** One payment or payout of an account. */
export interface SubjectRow {
  readonly account: number;
  readonly kind: Kind;
  readonly externalId: string;
}

/** An entry on its way into the log. */
export interface NewRow extends SubjectRow {
  readonly nowMs: number;
  readonly isCallback: boolean;
  readonly subjectId: string;
  readonly operation: string;
  readonly operationId: string;
  readonly rank: OperationState["rank"];
  readonly status: string;
  readonly fact: StoredFact;
  readonly call: string | undefined;
  readonly digest: string | undefined;
  readonly identity: string;
  readonly retentionMs: number;
  readonly bytes: Uint8Array;
}

export interface AppendedRow extends Pick<Appended, "outcome" | "conflict"> {
  readonly place: string;
  /** State of the external id after the event. */
  readonly state: PaymentState;
}

export interface EventRow {
  readonly place: string;
  /** State of the external id after the event. */
  readonly state: PaymentState;
  readonly bytes: Uint8Array;
}

/** The state of one operation, without its event. */
export interface StateFacts extends Omit<OperationState, "event" | "since"> {
  readonly since: string;
  /** Place of the event that set it. */
  readonly place: string;
}

export interface StateRow {
  readonly facts: StateFacts;
  readonly bytes: Uint8Array;
}

/** Bounds of the account's log at one instant; see Bounds. */
export interface BoundsRow {
  readonly floor: string;
  readonly tail: string;
}

export interface PageRow {
  readonly events: readonly EventRow[];
  readonly upTo: string;
  readonly bounds: BoundsRow;
}

export interface SnapshotRow {
  readonly states: readonly StateRow[];
  readonly last: string;
  readonly facts: readonly StoredFact[];
  readonly held: boolean;
  readonly folded: number;
}

/** Which events of an account to read: of one subject, or of some kinds (empty: all). */
export interface PageOf {
  readonly account: number;
  readonly subject?: { readonly kind: Kind; readonly externalId: string };
  readonly kinds: readonly EventKind[];
  /** Absent: from the oldest kept. */
  readonly after?: string;
  readonly limit: number;
  /** Events before this place are no longer kept. */
  readonly oldest: string;
}

export interface UnfinishedRow {
  readonly member: string;
  readonly sinceMs: number;
}

export interface LetterRow {
  readonly place: number;
  readonly id: string;
  readonly kind: Kind;
  readonly reason: string;
  readonly receivedMs: number;
  /** Encrypted. */
  readonly body: Uint8Array;
}

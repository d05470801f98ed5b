import type { EventKind } from "../../gen/payments/v1/event_pb.ts";
import type { PaymentState } from "../../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../../model/kinds.ts";
import type { StoredFact } from "../facts.ts";
import type { Appended, OperationState } from "../log.ts";

/**
 * What goes between the log and its operations in the store's thread. Places are cursors without
 * their epoch; bytes are those of stored-event.ts: the thread opens no seal.
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
  /** After the event. */
  readonly state: PaymentState;
}

export interface EventRow {
  readonly place: string;
  /** After the event. */
  readonly state: PaymentState;
  readonly bytes: Uint8Array;
}

/** The state of one operation, without its event. */
export interface StateFacts extends Omit<OperationState, "event" | "since"> {
  readonly since: string;
  /** Of the event that set it. */
  readonly place: string;
}

export interface StateRow {
  readonly facts: StateFacts;
  readonly bytes: Uint8Array;
}

/** The account's log at one instant; see Bounds. */
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

/** Which events are read of an account: of one subject, or of some kinds (empty: all). */
export interface PageOf {
  readonly account: number;
  readonly subject?: { readonly kind: Kind; readonly externalId: string };
  readonly kinds: readonly EventKind[];
  /** Absent: from the oldest kept. */
  readonly after?: string;
  readonly limit: number;
  /** Older ones are not kept; see `placeAt`. */
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
  /** Sealed. */
  readonly body: Uint8Array;
}

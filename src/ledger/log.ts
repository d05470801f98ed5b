import type { Event, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";

/** What to read: one payment or payout; undefined: all events of an account. */
export type Topic = { readonly kind: Kind; readonly externalId: string } | undefined;

/**
 * How far an operation has come: 0 init, 1 pending, 2 success or failure. It never goes back. -1 is
 * a status that the gateway does not know: it replaces no other.
 */
export type Rank = -1 | 0 | 1 | 2;

/** What the service said of an operation in words that the gateway does not know. */
export type Words = readonly (readonly [field: string, value: string])[];

/**
 * What is known of one operation of one subject; the external_id's state follows from these. A text
 * is replaced by a digest if longer than an id in a request may be.
 */
export interface Fact {
  /** payment_id or transaction_id: state is kept per subject and operation. */
  readonly subjectId: string;
  /**
   * payment, confirm, refund, …; `payout`. One that the contract does not have is `other:` and its
   * word, or `unknown` if that could not be read.
   */
  readonly operation: string;
  /** operation_id if the service gave one, else what distinguishes attempts, if anything does. */
  readonly operationId: string;
  /** `operationId` is not the service's: no client sees it. */
  readonly isAttempt?: boolean | undefined;
  readonly rank: Rank;
  /** Status text in lower case, to distinguish final states; empty if the service sent none. */
  readonly status: string;
  readonly statusCode?: string | undefined;
  /** Those that came with the rest, or newer ones. Default: none. */
  readonly words?: Words | undefined;
  /** Decimal text; absent if the service's text is too long to be an amount. */
  readonly amount?: string | undefined;
  readonly currency?: string | undefined;
  /** Whether the payment was made with `confirm: false`; absent if this gateway cannot know. */
  readonly held?: boolean | undefined;
}

/** What became known of a payment or payout, before the log gives it a cursor. */
export interface Entry extends Fact {
  /** The event without `cursor`, `received_at` and `state`, which the log sets. */
  readonly event: Event;
  readonly kind: Kind;
  readonly source: EventSource;
  readonly externalId: string;
  /** The call that this entry answers: it is no longer noted as a hold. */
  readonly call?: string | undefined;
  /** Digest of a callback's raw bytes; absent for other sources. */
  readonly digest?: string | undefined;
  /**
   * Digest of what makes two events the same: kind, subject, operation, operation_id, status,
   * status_code and receipt.
   */
  readonly identity: string;
}

export interface Appended {
  /**
   * - `stored`: a new event, published to readers;
   * - `duplicate`: nothing was stored or published.
   */
  readonly outcome: "stored" | "duplicate";
  /** The stored event; absent for a duplicate. */
  readonly event?: Event;
  /** The operation already had a different final state: both events are kept. */
  readonly conflict: boolean;
}

/** A fact, and where the log has it: as cursors, or as places within the log. */
export interface PlacedFact extends Fact {
  /** Its operation's first event: it shows which attempt is the latest. */
  readonly since: Cursor;
  /** The event that it is from, the highest-ranking one of its operation. */
  readonly place: Cursor;
}

/** A fact with its event. */
export interface OperationState extends PlacedFact {
  readonly event: Event;
}

/** What is known of the operations of an external_id: a record says it, and what is read of one. */
export interface Facts<Of extends Fact = Fact> {
  /** In the order in which they became known; failures beyond the newest 100 are left out. */
  readonly operations: readonly Of[];
  /**
   * Ids of calls with `confirm: false` whose payment is not known yet: while there are some,
   * operations without a `held` of their own count as held.
   */
  readonly holds: readonly string[];
}

/** Which payments or payouts of an account to list. */
export interface Selection {
  readonly kind: Kind;
  /** As `Event.state` has them. Empty: all. */
  readonly states: readonly PaymentState[];
  /** Only those that need an operator, or only the others. Undefined: all. */
  readonly needsOperator: boolean | undefined;
  /** First heard of later, and earlier, than these; in microseconds since the epoch. */
  readonly after?: number | undefined;
  readonly before?: number | undefined;
  /** Begin with the one that was heard of last. */
  readonly newestFirst: boolean;
}

/** A payment or payout in a list. */
export interface Listed {
  readonly externalId: string;
  /**
   * When the store first heard of it, in microseconds since the epoch. No other one of the account
   * has the same: it is the place in the list.
   */
  readonly firstSeen: number;
}

export interface ReadOptions {
  /** Ends the iteration, which throws `errorOfAbort(signal)` with `resumeCursor`. */
  readonly signal: AbortSignal;
  /** Called with the cursor that reading starts from, before `read` resolves. */
  readonly onStart?: ((place: Cursor) => void) | undefined;
  /** Called at once with the error that ends the iteration, even while no `next` is pending. */
  readonly onFail?: ((error: Error) => void) | undefined;
  /** Offered each live event while a `next` is pending; what it declines goes to the `next`. */
  readonly push?: Push | undefined;
}

/**
 * Delivers an event to its reader within the call that stores it, without a copy for each reader.
 * Returns false if it cannot take the event now: then the iteration yields it. Must not throw or
 * block.
 */
export type Push = (event: Event) => boolean;

import type { Event, EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { PaymentState } from "../gen/payments/v1/payment_pb.ts";
import type { Kind } from "../model/kinds.ts";
import type { Cursor } from "../stores/cursor.ts";
import type { DeadLetters } from "./dead-letter.ts";

/** What to read: one payment or payout, or all events of an account of some kinds (empty: all). */
export type Topic =
  | { readonly kind: Kind; readonly externalId: string }
  | { readonly kinds: readonly EventKind[] };

/**
 * How far an operation has come: 0 init, 1 pending, 2 success or failure. It never goes back. -1 is
 * a status that the gateway does not know: it replaces no other.
 */
export type Rank = -1 | 0 | 1 | 2;

/** What the service said of an operation in words that the gateway does not know. */
export type Words = readonly (readonly [field: string, value: string])[];

/** What became known of a payment or payout, before the log gives it a cursor. */
export interface Entry {
  /** The event without `cursor`, `received_at` and `state`, which the log sets. */
  readonly event: Event;
  readonly kind: Kind;
  readonly source: EventSource;
  readonly externalId: string;
  /**
   * payment_id, transaction_id, or the id of a lost call: state is kept per subject and operation.
   * This text and those below are replaced by a digest if longer than an id in a request may be.
   */
  readonly subjectId: string;
  /**
   * payment, confirm, refund, …; `payout`; `call` for a lost call. One that the contract does not
   * have is `other:` and its word, or `unknown` if that could not be read.
   */
  readonly operation: string;
  /** operation_id if the service gave one, else what distinguishes attempts, if anything does. */
  readonly operationId: string;
  /** `operationId` is not the service's: no client sees it. */
  readonly isAttempt?: boolean;
  readonly rank: Rank;
  /** Status text in lower case, to distinguish final states; empty if the service sent none. */
  readonly status: string;
  readonly statusCode?: string;
  /** Default: none. */
  readonly words?: Words;
  /** Decimal text; empty if the service's text is too long to be an amount. */
  readonly amount?: string;
  readonly currency?: string;
  /**
   * Whether the payment was made with `confirm: false`; absent if this gateway cannot know. On the
   * entry of a settled call, true marks what the call made as held, if the call is noted as a hold.
   */
  readonly held?: boolean | undefined;
  /**
   * The call that this entry answers, settles or reports as not done: it is no longer noted as a
   * hold.
   */
  readonly call?: string | undefined;
  /** Digest of a callback's raw bytes; absent for other sources. */
  readonly digest?: string | undefined;
  /**
   * Digest of what makes two events the same: kind, subject, operation, operation_id, status,
   * status_code and receipt.
   */
  readonly identity: string;
  /** `traceparent` of the span that appends it; see `traceOf`. */
  readonly trace?: string;
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

/**
 * What is known of one operation of one subject; the external_id's state follows from these.
 * `words` are the newest since the rest was stored, or those that came with it.
 */
export interface Fact
  extends Pick<Entry, "subjectId" | "operation" | "operationId" | "isAttempt" | "rank" | "status">,
    Pick<Entry, "statusCode" | "words" | "amount" | "currency" | "held"> {
  /** When the log stored it, in milliseconds since the epoch; text, since the store fills it in. */
  readonly at: string;
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

/** All that is known of the operations of an external_id. */
export interface Facts<Of extends Fact = Fact> {
  /** In the order in which they became known; failures beyond the newest 100 are left out. */
  readonly operations: readonly Of[];
  /**
   * A call with `confirm: false` is noted as a hold: operations without a `held` of
   * their own count as held.
   */
  readonly held: boolean;
  /** How many failures were left out. */
  readonly folded: number;
}

/** All that is known of one external id at one instant. */
export interface Snapshot extends Facts<OperationState> {
  /** Position of the snapshot: reading after it yields exactly the later events. */
  readonly cursor: Cursor;
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

/**
 * The log of events about payments and payouts: append, look up, and read on from any cursor. One
 * log serves all merchant accounts and keeps them separate: no account can reach another's data.
 *
 * What every implementation promises (and `test/contracts/event-log.ts` checks):
 * - append is atomic: stored, deduplicated, merged into the state and published in one step;
 * - an account's cursors grow with each event, and their order as text is the order of the events;
 * - `read` yields each event of the topic after its start exactly once, in order: stored events,
 *   then live ones, without a gap between the two;
 * - state never goes back in rank; of two different final states success wins (see merge.ts);
 * - a status that is not known changes no state: its word is kept with the operation;
 * - each event carries the state of its external id after it (see payment-state.ts), and an
 *   external id keeps the newest 100 of its failures.
 *
 * All readers share one object per event: nobody may change it.
 *
 * Deduplication: a callback is a duplicate of an earlier callback with the same digest or the same
 * identity. A response or a reconciliation is a duplicate of any earlier entry with the same
 * identity, and also if it would lower the rank of its operation, since it adds nothing. The
 * exception is the first entry that says whether the payment is held, if that differs from what was
 * noted.
 */
export interface EventLog {
  /** Whether what was appended survives this process. */
  readonly durable: boolean;
  /** Callbacks that could not be turned into events. */
  readonly letters: DeadLetters;
  /** @throws GatewayError UNAVAILABLE when the store is out of reach: nothing was acknowledged. */
  append(account: string, entry: Entry): Promise<Appended>;
  /** The state of one external id; undefined when nothing is known. */
  snapshot(account: string, kind: Kind, externalId: string): Promise<Snapshot | undefined>;
  /**
   * Events of a topic after a cursor; `latest` is from now on, `earliest` from the oldest kept. The
   * start is fixed when the promise resolves: everything appended later is yielded.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor; OUT_OF_RANGE for a cursor
   * of another log, older than what is kept, or ahead of the log. The iteration throws
   * RESOURCE_EXHAUSTED when its live buffer (1,000 events) is full and UNAVAILABLE when the log is
   * closed, both with `resumeCursor`, and OUT_OF_RANGE when the retention overtakes it.
   */
  read(
    account: string,
    topic: Topic,
    after: Cursor | "latest" | "earliest",
    options: ReadOptions,
  ): Promise<AsyncIterable<Event>>;
  /**
   * The newest `limit` kept events of one payment or payout, oldest first; with `before`, the
   * newest of those before that cursor.
   * @throws GatewayError INVALID_ARGUMENT for text that is not a cursor; OUT_OF_RANGE for a cursor
   * of another log
   */
  history(
    account: string,
    kind: Kind,
    externalId: string,
    limit: number,
    before?: Cursor,
  ): Promise<Event[]>;
  /**
   * The first `limit` payments or payouts of a selection that are known, in the order in which the
   * store first heard of each. What is known of them may have changed since this was read.
   * @throws GatewayError UNAVAILABLE when the store is out of reach
   */
  list(account: string, selection: Selection, limit: number): Promise<Listed[]>;
  /**
   * The cursor after which exactly the newest `count` kept events come, or all if there are fewer.
   */
  cursorBefore(account: string, count: number): Promise<Cursor>;
  /** Ends all reads. A closed log accepts nothing more. */
  close(): Promise<void>;
}

/** Whether a topic includes an event. */
export function isAbout(topic: Topic, event: Event): boolean {
  if ("externalId" in topic) {
    return topic.kind === event.kind && topic.externalId === event.externalId;
  }
  return topic.kinds.length === 0 || topic.kinds.includes(event.kind);
}

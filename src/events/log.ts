import type { Event, EventKind, EventSource } from "../gen/payments/v1/event_pb.ts";
import type { Kind } from "../model/kinds.ts";

/** A cursor in a request: text that `Event.cursor` once was. */
export type Cursor = string;

/** What a reader reads: one payment or payout, or all of an account of some kinds (empty: all). */
export type Topic =
  | { readonly kind: Kind; readonly externalId: string }
  | { readonly kinds: readonly EventKind[] };

/** How far an operation has come: 0 init, 1 pending, 2 success or failure. It never goes back. */
export type Rank = 0 | 1 | 2;

/** Something learned of a payment or payout, before it has a place in the log. */
export interface Entry {
  /** The event without `cursor`, `received_at` and the states, which the log sets. */
  readonly event: Event;
  readonly kind: Kind;
  readonly source: EventSource;
  readonly externalId: string;
  /**
   * payment_id or transaction_id: state is kept per subject and operation. This text and those below
   * are digests where they are longer than an id of a request may be.
   */
  readonly subjectId: string;
  /** payment, confirm, refund, …; `payout` for payouts; `unknown` for one not in the contract. */
  readonly operation: string;
  /** operation_id where given, else what tells attempts apart, if anything does. */
  readonly operationId: string;
  /** The operation_id is not the service's: nobody is shown it. */
  readonly isAttempt?: boolean;
  readonly rank: Rank;
  /** Status text in lower case, to tell two different final states apart; empty if not told. */
  readonly status: string;
  readonly statusCode?: string;
  /** Decimal text. */
  readonly amount?: string;
  readonly currency?: string;
  /**
   * Whether it was made with `confirm: false`; absent where this gateway cannot know. Of a call that
   * was settled: what it made is held, if the call is noted as a hold.
   */
  readonly held?: boolean;
  /**
   * The call whose answer it is, or that was settled or turned out as not done: it is noted as a hold
   * no more.
   */
  readonly call?: string;
  /** Digest of a callback's raw bytes; absent for other sources. */
  readonly digest?: string;
  /** Digest of payment_id, operation, operation_id, status and status_code. */
  readonly identity: string;
  /** `traceparent` of the span that made it known; see trace-of.ts. */
  readonly trace?: string;
}

export interface Appended {
  /**
   * - `stored`: a new event, published to readers;
   * - `duplicate`: nothing was stored or published.
   */
  readonly outcome: "stored" | "duplicate";
  /** The stored event; for a duplicate, absent. */
  readonly event?: Event;
  /** The operation had another final state already: both are kept. */
  readonly conflict: boolean;
}

/** State of one operation of one subject, as its highest-ranking event told it. */
export interface OperationState {
  readonly operation: string;
  readonly subjectId: string;
  readonly operationId: string;
  readonly rank: Rank;
  readonly status: string;
  /** Cursor of the first event of this operation: which attempt is the latest. */
  readonly since: Cursor;
  /** The event that set the state. */
  readonly event: Event;
}

/** What is known of one operation, without its event: enough to tell the state of its external_id. */
export interface Fact {
  /** payment_id, transaction_id, or the id of a call. */
  readonly subjectId: string;
  /** payment, confirm, refund, …; `payout`; `call` for a call whose answer was lost. */
  readonly operation: string;
  /** operation_id where given, else empty. */
  readonly operationId: string;
  readonly rank: Rank;
  /** In lower case; empty if not told. */
  readonly status: string;
  readonly statusCode: string;
  /** Decimal text; empty if not told. */
  readonly amount: string;
  readonly currency: string;
  /** When the log learned of this state, in milliseconds since the epoch. */
  readonly atMs: number;
  /** Made with `confirm: false`, or not; undefined if this gateway did not make it. */
  readonly held?: boolean;
}

/** All that is known of the operations of an external_id. */
export interface Facts {
  /** In the order in which they became known; failures beyond the newest 100 are left out. */
  readonly operations: readonly Fact[];
  /** A payment was about to be made with `confirm: false`: what no answer tells of is taken for held. */
  readonly held: boolean;
  /** How many failures were left out. */
  readonly folded: number;
}

/** All that is known of one external id at one instant. */
export interface Snapshot {
  /** One per subject and operation, in the order of the events that set them. */
  readonly states: readonly OperationState[];
  /** The same without events, and what was left out: what the state of the external id follows from. */
  readonly facts: Facts;
  /** Position of the snapshot: reading behind it yields exactly what came after the snapshot. */
  readonly cursor: Cursor;
}

/** A callback whose signature was right but whose body was not understood. */
export interface DeadLetter {
  /** Digest of kind and body: the same body is kept once. */
  readonly id: string;
  readonly kind: Kind;
  /** The raw body, in base64. */
  readonly body: string;
  readonly reason: string;
  readonly receivedAtMs: number;
}

/** A dead letter that is found again. */
export interface StoredDeadLetter extends Omit<DeadLetter, "body"> {
  /** Absent when it was sealed with a password that is no longer accepted. */
  readonly body?: string;
  /** Where it stands among those of its account, also once it is removed. */
  readonly place: string;
}

export interface DeadLettersOptions {
  /** Default: the oldest first. */
  readonly newestFirst?: boolean;
  /** The place of a letter: the list goes on behind it. */
  readonly behind?: string | undefined;
}

/** An operation that pays and has not come to its end, as far as the log knows. */
export interface Unfinished {
  readonly kind: Kind;
  readonly externalId: string;
  readonly subjectId: string;
  readonly operation: string;
  /** How long ago the log first heard of it. */
  readonly ageMs: number;
}

export interface ReadOptions {
  /** Ends the iteration, which throws `errorOfAbort(signal)` with `resumeCursor`. */
  readonly signal: AbortSignal;
  /** Hears the place that is read on from, before `read` resolves. */
  readonly onStart?: ((place: Cursor) => void) | undefined;
  /** Hears what ends the iteration as soon as it is known, also while nobody asks for an event. */
  readonly onFail?: ((error: Error) => void) | undefined;
  /** Offered each live event while a `next` waits; what it does not take resolves the `next`. */
  readonly push?: Push | undefined;
}

/**
 * Takes an event to its reader in the call that stores it, without a copy for each reader. False: it
 * cannot take it now, and the iteration yields it. It neither throws nor waits.
 */
export type Push = (event: Event) => boolean;

/**
 * The log of what became known of payments and payouts: append, look up, read on from any place.
 * One log serves all merchant accounts and keeps them apart; nothing of one is reachable by another.
 *
 * What every implementation promises (and `test/contracts/event-log.ts` holds it to):
 * - append is atomic: stored, deduplicated, merged into the state and published in one step;
 * - cursors of an account grow with each event, and their text order is their order;
 * - `read` yields each event of the topic behind its start exactly once, in order, live after the
 *   stored ones, with no gap between the two;
 * - state never goes back in rank; of two different final states success stands (see merge.ts);
 * - each event carries the state of its external id after it (see payment-state.ts), and of failures
 *   an external id keeps the newest 100.
 *
 * Events are shared by all readers: nobody changes one.
 *
 * Deduplication: a callback is a duplicate of an earlier callback with the same digest or the same
 * identity. A response or a reconciliation is one of any earlier entry with the same identity, and
 * also when it would take its operation back in rank: it teaches nothing then, unless it is the first
 * to tell whether the payment is held, and that is not what was noted.
 */
export interface EventLog {
  /** Whether what was appended survives this process. */
  readonly durable: boolean;
  /** @throws GatewayError UNAVAILABLE when the store is out of reach: nothing was acknowledged. */
  append(account: string, entry: Entry): Promise<Appended>;
  /**
   * Notes that a call is about to make a payment with `confirm: false`, or that it made none: while
   * one is noted, what becomes known of attempts that no answer told of is a hold. No event, and
   * nothing is known of an external id by it alone.
   * @throws GatewayError UNAVAILABLE when the store is out of reach
   */
  noteHold(account: string, externalId: string, call: string, isHolding: boolean): Promise<void>;
  /** The state of one external id; undefined when nothing is known. */
  snapshot(account: string, kind: Kind, externalId: string): Promise<Snapshot | undefined>;
  /**
   * Events of a topic behind `after`: `latest` is from now on, `earliest` from the oldest kept.
   * The start is fixed when the promise resolves: what is appended after that will be yielded.
   * @throws GatewayError INVALID_ARGUMENT for a text that never was a cursor; OUT_OF_RANGE for a
   * cursor older than what is kept or ahead of the log. The iteration throws RESOURCE_EXHAUSTED
   * when its live buffer (1,000 events) is full and UNAVAILABLE when the log is closed, both with
   * `resumeCursor`, and OUT_OF_RANGE when the retention overtakes it.
   */
  read(
    account: string,
    topic: Topic,
    after: Cursor | "latest" | "earliest",
    options: ReadOptions,
  ): Promise<AsyncIterable<Event>>;
  /**
   * The newest `limit` kept events of one payment or payout, oldest first; with `before` the newest of
   * those before that cursor.
   * @throws GatewayError INVALID_ARGUMENT for a text that never was a cursor; OUT_OF_RANGE for a
   * cursor of another log
   */
  history(
    account: string,
    kind: Kind,
    externalId: string,
    limit: number,
    before?: Cursor,
  ): Promise<Event[]>;
  /** The cursor behind which exactly the newest `count` kept events are, or all if there are fewer. */
  cursorBefore(account: string, count: number): Promise<Cursor>;
  /**
   * Keeps a body that was not understood, once per id. Letters are kept until they are removed.
   * @throws GatewayError UNAVAILABLE when it cannot be kept: nothing was acknowledged.
   */
  addDeadLetter(account: string, letter: DeadLetter): Promise<void>;
  /**
   * The dead letters of an account, in the order in which they came. A few at a time are read, as they
   * are asked for: what is removed meanwhile may be missing, all else is told once.
   * @throws GatewayError INVALID_ARGUMENT for a place that never was one
   */
  deadLetters(account: string, options?: DeadLettersOptions): AsyncIterable<StoredDeadLetter>;
  deadLetter(account: string, id: string): Promise<StoredDeadLetter | undefined>;
  /** How many there are. */
  countDeadLetters(account: string): Promise<number>;
  /** Forgets a dead letter, after it was replayed or given up. Whether it was there. */
  removeDeadLetter(account: string, id: string): Promise<boolean>;
  /**
   * Operations that pay, that the log first heard of so long ago, and of which it knows no end: the
   * oldest first. The newest 100,000 of an account are kept in mind.
   */
  unfinished(account: string, forMs: number, limit: number): Promise<Unfinished[]>;
  /** Tells of them no more, until another event without an end comes: somebody looks after them. */
  dismiss(account: string, unfinished: readonly Unfinished[]): Promise<void>;
  /** Ends all reads; a closed log takes nothing more. */
  close(): Promise<void>;
}

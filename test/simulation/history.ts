/** What callers, the service and watchers saw of one simulation: all that the checks judge by. */
export interface History {
  /** When the history ended. */
  readonly endedMs: number;
  readonly calls: readonly CallRecord[];
  readonly posts: readonly PostRecord[];
  /** When each request left for the service, and from which gateway. */
  readonly requests: readonly RequestRecord[];
  readonly callbacks: readonly CallbackRecord[];
  readonly shown: readonly ShownRecord[];
  /** Watchers that are connected at the end. */
  readonly watchers: readonly WatcherRecord[];
  readonly resumed: readonly ResumeRecord[];
  readonly looks: readonly LookRecord[];
  /** The whole log at the end, in order. */
  readonly log: readonly LoggedEvent[];
  /** For each external_id, what the gateway reports at the end and what the ledger has. */
  readonly ends: readonly EndRecord[];
  /** What the lists show at the end. Absent: they were not asked for. */
  readonly listed?: readonly ListedRecord[];
  /** When a gateway was paused or dead: the checks expect less of it then. */
  readonly absences: readonly (Period & { readonly replica: string })[];
  /** When something else failed, or the budget changed: the checks expect less of all then. */
  readonly troubles: readonly Period[];
  /** What happened at the service without a call of a gateway. */
  readonly elsewhere: readonly ElsewhereRecord[];
  /** What came instead of a cursor, and whether it was refused. */
  readonly misread: readonly MisreadRecord[];
  /** The limits of the service: when each began, and when an answer first told a gateway. */
  readonly limits: readonly LimitRecord[];
  /**
   * When some gateways may have been cut off from the shared budget while others reached it, and
   * how many gateways there are in all: one that is cut off goes on with its share.
   */
  readonly apart: readonly (Period & { readonly gateways: number })[];
  /** Whether each gateway serves again at the end. */
  readonly gateways: readonly { readonly name: string; readonly back: boolean }[];
  readonly lines: readonly Line[];
}

interface Period {
  readonly fromMs: number;
  readonly toMs: number;
}

interface LimitRecord {
  readonly account?: string;
  readonly fromMs: number;
  readonly perSecond: number;
  toldMs?: number;
}

/** One message, for the diagram. */
interface Line {
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/**
 * - `paid`, `pending`, `failed`: the service answered so;
 * - `refused`: the gateway answered that the call did nothing;
 * - `unknown`: the gateway answered that the outcome is unknown;
 * - `gone`: the caller left, or its connection was lost.
 */
export type CallOutcome = "paid" | "pending" | "failed" | "refused" | "unknown" | "gone";

/**
 * One call of a caller that moves money. The `externalId` of all records is its name among those of
 * all accounts.
 */
export interface CallRecord {
  readonly id: string;
  /** Absent: there is one account. */
  readonly account?: string;
  /** The call answers when it has come so far. */
  readonly waits?: string | undefined;
  /** The name of the request: repeats with a key share it. */
  readonly request: string;
  readonly key?: string | undefined;
  readonly method: string;
  readonly externalId: string;
  readonly replica: string;
  readonly beganMs: number;
  readonly deadlineMs?: number | undefined;
  /** When the caller got the outcome; absent if it left or its gateway died. */
  endedMs?: number;
  outcome?: CallOutcome;
  /** The id of the payment in the answer. */
  paymentId?: string;
  state?: string;
  error?: string;
}

/** One request that moves money, as it reached the service. */
export interface PostRecord {
  readonly n: number;
  /** The caller's call that it was sent for, where that is known. */
  readonly call?: string;
  readonly request: string;
  readonly method: string;
  readonly externalId: string;
  readonly replica: string;
  readonly sentMs: number;
  readonly arrivedMs: number;
  /** The service rejected it with Too Many Requests. */
  readonly tooMany: boolean;
  /** How the service answers it; `unclear`: not at all, or not understandably. */
  answer?: "result" | "refusal" | "unclear";
  /** When a gateway receives that answer. */
  answeredMs?: number;
  paymentId?: string;
  /** It moved money, or will. */
  charged: boolean;
  /**
   * When a gateway first received a statement on it that it understands: answer, callback, look-up.
   */
  knownMs?: number;
}

export interface RequestRecord {
  readonly sentMs: number;
  readonly replica: string;
  readonly account?: string;
  /** The name of the request that moves money. */
  readonly request?: string;
  /** The payment or payout that the gateway looks up by itself. */
  readonly about?: string;
  /** No answer to it reaches the gateway. */
  isLost?: boolean;
}

/** A payment that another client made, or one that was taken back. */
interface ElsewhereRecord {
  readonly atMs: number;
  readonly externalId: string;
  readonly paymentId: string;
  readonly what: "pay" | "refund" | "refundPart" | "refundFails" | "cancel";
}

/** A watch that began with text that is no cursor, or with one of another account. */
interface MisreadRecord {
  readonly cursor: string;
  readonly expected: "INVALID_ARGUMENT" | "OUT_OF_RANGE";
  readonly told: string;
}

/** One callback, with the answers to all its deliveries. */
export interface CallbackRecord {
  readonly id: string;
  readonly answers: { readonly atMs: number; readonly status: number }[];
}

export interface LoggedEvent {
  /** Absent: there is one account. Cursors of two accounts are not compared. */
  readonly account?: string;
  /** It is about an operation that pays. */
  readonly isPaying?: boolean;
  /** It is the end of an operation that pays. */
  readonly isFinal?: boolean;
  readonly cursor: string;
  /** When the log stored it. */
  readonly storedMs: number;
  readonly externalId: string;
  readonly state: string;
  /** The callback that it comes from. */
  readonly callback?: string | undefined;
  /** The outcome of a call: `UNKNOWN`, `SETTLED`, `NOT_DONE`, `NEEDS_OPERATOR`. */
  readonly callOutcome?: string | undefined;
}

export interface ShownRecord extends LoggedEvent {
  readonly watcher: string;
  readonly atMs: number;
  /** It is the current state, with which a watch without a cursor begins. */
  readonly isFirst?: boolean;
}

/** A watcher that came back with its cursor. */
export interface ResumeRecord {
  readonly watcher: string;
  readonly cursor: string;
  /** The gateway answered OUT_OF_RANGE: the log does not have this cursor any more. */
  refused: boolean;
}

export interface WatcherRecord {
  readonly id: string;
  readonly account?: string;
  readonly externalId?: string | undefined;
  /** It ends with the payment. */
  readonly untilFinal?: boolean;
  /** When the gateway ended it, as it should once the payment is final. */
  endedMs?: number;
  /** When it was connected, from the time that it missed nothing. */
  readonly connected?: { readonly fromMs: number; toMs: number }[];
  /** The cursor at which it began, from the gateway or from the first event. */
  from?: string;
}

/** An answer of GetPayment or GetPayout. */
interface LookRecord {
  readonly externalId: string;
  readonly askedMs: number;
  readonly atMs: number;
  /** `NOT_FOUND` where nothing is known. */
  readonly state: string;
}

export interface EndRecord {
  readonly externalId: string;
  readonly state: string;
  readonly unknown: boolean;
  readonly needsOperator: boolean;
  /** The state by the service's ledger. */
  readonly expected: string;
}

/** The states whose lists are asked for. */
export const statesListed = ["PAID", "FAILED", "UNKNOWN"] as const;

/** A row of a list. */
export interface ListedRecord extends Omit<EndRecord, "expected"> {
  /** The state that was asked for; absent for the list of all. */
  readonly of?: string;
}

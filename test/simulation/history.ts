/** What callers, the service and watchers saw of one simulation: all that the checker knows. */
export interface History {
  /** When it was over. */
  readonly endedMs: number;
  readonly calls: readonly CallRecord[];
  readonly posts: readonly PostRecord[];
  /** When each request left for the service, and what it allowed then. */
  readonly requests: readonly RequestRecord[];
  readonly callbacks: readonly CallbackRecord[];
  readonly shown: readonly ShownRecord[];
  /** Watchers that are connected at the end. */
  readonly watchers: readonly WatcherRecord[];
  readonly resumed: readonly ResumeRecord[];
  readonly looks: readonly LookRecord[];
  /** All that the log has at the end, in order. */
  readonly log: readonly LoggedEvent[];
  /** By external_id, what the gateway says at the end, and what the service's ledger does. */
  readonly ends: readonly EndRecord[];
  /** Times at which a process stood still or was gone, for what cannot be expected of it then. */
  readonly absences: readonly {
    readonly replica: string;
    readonly fromMs: number;
    readonly toMs: number;
  }[];
  /** The limits of the service, by when they began, and when an answer told the gateways. */
  readonly limits: readonly {
    readonly fromMs: number;
    readonly perSecond: number;
    readonly toldMs?: number;
  }[];
  /**
   * Times at which some gateways may have been cut off from a budget that others reached, and how many
   * there are: each of them then goes on with its share.
   */
  readonly apart: readonly {
    readonly fromMs: number;
    readonly toMs: number;
    readonly gateways: number;
  }[];
  /** Whether each gateway serves again, once all was done. */
  readonly gateways: readonly { readonly name: string; readonly back: boolean }[];
  readonly lines: readonly Line[];
}

/** One message, for the diagram. */
export interface Line {
  readonly atMs: number;
  readonly from: string;
  readonly to: string;
  readonly text: string;
}

/**
 * - `paid`, `pending`, `failed`: the service's word;
 * - `refused`: the caller was told that the call did nothing;
 * - `unknown`: told that nobody knows;
 * - `gone`: the caller left, or its connection was lost.
 */
export type CallOutcome = "paid" | "pending" | "failed" | "refused" | "unknown" | "gone";

/** One call of a caller that moves money. */
export interface CallRecord {
  readonly id: string;
  /** Names what was asked for: repeats with a key have the same. */
  readonly request: string;
  readonly key?: string | undefined;
  readonly method: string;
  readonly externalId: string;
  readonly replica: string;
  readonly beganMs: number;
  readonly deadlineMs?: number | undefined;
  /** It waited for the end by itself: neither did it leave nor did its gateway die. */
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
  /** The service refused to look at it. */
  readonly tooMany: boolean;
  paymentId?: string;
  /** It moved money, or will have. */
  charged: boolean;
  /** When a gateway had the service's understandable word on it: answer, callback, look-up. */
  knownMs?: number;
}

export interface RequestRecord {
  readonly sentMs: number;
  readonly replica: string;
}

/** A callback, however often it was sent. */
export interface CallbackRecord {
  readonly id: string;
  readonly answers: { readonly atMs: number; readonly status: number }[];
}

export interface LoggedEvent {
  readonly cursor: string;
  /** When the log took it. */
  readonly storedMs: number;
  readonly externalId: string;
  readonly state: string;
  /** The callback that it came by. */
  readonly callback?: string | undefined;
  /** `UNKNOWN`, `SETTLED`, `NOT_DONE`, `NEEDS_OPERATOR`: what became of a call. */
  readonly callOutcome?: string | undefined;
}

export interface ShownRecord extends LoggedEvent {
  readonly watcher: string;
  readonly atMs: number;
  /** The current state, with which a watch without a cursor begins. */
  readonly isFirst: boolean;
}

/** A watcher that came back with its cursor. */
export interface ResumeRecord {
  readonly watcher: string;
  readonly cursor: string;
  /** It was told that there is no such place in the log any more. */
  refused: boolean;
}

export interface WatcherRecord {
  readonly id: string;
  readonly externalId?: string | undefined;
  /** Where it began, told by the gateway or by the first event. */
  from?: string;
}

/** What a caller was told who asked for a payment or payout. */
export interface LookRecord {
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
  /** By the ledger. */
  readonly expected: string;
}

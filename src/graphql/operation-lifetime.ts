import type { UnderWay } from "../collections/under-way.ts";
import type { Slot } from "../net/admission.ts";
import type { OperationRecord } from "./operation-record.ts";

/** One operation, which lasts until its client leaves or its deadline passes. */
export interface OperationLifetime {
  /** Identifies its log records; the client receives it. */
  readonly requestId: string;
  readonly record: OperationRecord;
  readonly idempotencyKey: string | undefined;
  /** Whether the operation is in the URL of a GET. */
  readonly isGet: boolean;
  /** Whether a mutation got the outcome of an earlier call with its key. */
  isReplay: boolean;
  /** Whether one of its mutations moves money. */
  movesMoney: boolean;
  /** When what was refused may be tried again, in seconds; undefined if nothing says so. */
  retryAfterSeconds: number | undefined;
  /** Aborts when the client goes away, and with a TimeoutError at the deadline. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  /** The operation's slot among the calls in flight. */
  readonly slot: Slot | undefined;
  /** Removes the deadline and gives the slot back: the operation is a stream, or is over. */
  readonly liftDeadline: () => void;
  /** Called when the client has left or has its response: cancels what still runs for it. */
  readonly end: () => void;
}

export interface OperationLifetimeOptions {
  readonly requestId: string;
  readonly record: OperationRecord;
  readonly idempotencyKey?: string | undefined;
  /** Default: no. */
  readonly isGet?: boolean;
  readonly timeoutMs: number;
  readonly slot?: Slot;
  /**
   * Queries and mutations without a response yet, but no streams. Their clients receive the reason
   * of an abort.
   */
  readonly underWay: UnderWay<AbortController>;
}

export function createLifetime(options: OperationLifetimeOptions): OperationLifetime {
  const { requestId, record, idempotencyKey, isGet = false, timeoutMs, slot, underWay } = options;
  const controller = new AbortController();
  const member = underWay.add(controller);
  const timer = setTimeout(() => {
    controller.abort(new DOMException("the operation took too long", "TimeoutError"));
  }, timeoutMs);
  const liftDeadline = () => {
    clearTimeout(timer);
    member.leave();
    slot?.leave();
  };
  return {
    requestId,
    record,
    idempotencyKey,
    isGet,
    isReplay: false,
    movesMoney: false,
    retryAfterSeconds: undefined,
    slot,
    signal: controller.signal,
    deadlineMs: Date.now() + timeoutMs,
    liftDeadline,
    end() {
      liftDeadline();
      controller.abort();
    },
  };
}

import type { UnderWay } from "../collections/under-way.ts";
import type { Slot } from "../net/admission.ts";
import type { OperationRecord } from "./operation-record.ts";

/** One operation and how long it lives: until its client goes away or its time is over. */
export interface OperationLifetime {
  /** Ties its log records together; told to the client. */
  readonly requestId: string;
  readonly record: OperationRecord;
  readonly idempotencyKey: string | undefined;
  /** Aborts when the client goes away, and with a TimeoutError at the deadline. */
  readonly signal: AbortSignal;
  /** Milliseconds since the epoch. */
  readonly deadlineMs: number;
  /** The operation's slot among the calls in flight. */
  readonly slot: Slot | undefined;
  /** Lifts the deadline, and gives the slot back: the operation is a stream. */
  readonly liftDeadline: () => void;
  /** The client is gone, or has its answer: what still runs for it is cancelled. */
  readonly end: () => void;
}

export interface OperationLifetimeOptions {
  readonly requestId: string;
  readonly record: OperationRecord;
  readonly idempotencyKey?: string | undefined;
  readonly timeoutMs: number;
  readonly slot?: Slot;
  /**
   * Queries and mutations that have no answer yet, and are no streams: what aborts them tells their
   * clients why.
   */
  readonly underWay: UnderWay<AbortController>;
}

export function createLifetime(options: OperationLifetimeOptions): OperationLifetime {
  const { requestId, record, idempotencyKey, timeoutMs, slot, underWay } = options;
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

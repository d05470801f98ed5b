import { UnderWayByName } from "../collections/under-way.ts";
import { errorOfAbort, GatewayError } from "../errors.ts";
import { startTimer } from "./timer.ts";

/** Until when one of several callers waits. */
export interface WaitBudget {
  readonly signal: AbortSignal;
  /** In milliseconds since the epoch. */
  readonly deadlineMs?: number;
}

/** Identical calls that are in flight at the same time, made once. */
export interface InFlight {
  /**
   * Joins the call of this key that has no answer yet, or starts one. Each caller leaves by its own
   * signal and deadline. The answer is one object for all: nobody may change it.
   */
  share<Result>(
    key: string,
    waitBudget: WaitBudget,
    start: (shared: SharedWaitBudget) => Promise<Result>,
  ): Promise<Result>;
}

/** Until when the callers of one call wait. */
export interface SharedWaitBudget {
  /** Aborts when all have left. */
  readonly signal: AbortSignal;
  /** The latest deadline of any of them so far, in milliseconds since the epoch, or Infinity. */
  readonly deadlineMs: () => number;
}

interface SharedCall {
  readonly answer: Promise<unknown>;
  readonly abort: AbortController;
  readonly waitBudget: { deadlineMs: number };
  waiting: number;
}

export function createInFlight(): InFlight {
  const calls = new UnderWayByName<SharedCall>();

  function forget(key: string, call: SharedCall): void {
    if (calls.get(key) === call) calls.delete(key);
  }

  function begin(
    key: string,
    start: (shared: SharedWaitBudget) => Promise<unknown>,
    deadlineMs: number,
  ): SharedCall {
    const abort = new AbortController();
    const waitBudget = { deadlineMs };
    const answer = start({ signal: abort.signal, deadlineMs: () => waitBudget.deadlineMs });
    const call = { answer, abort, waiting: 0, waitBudget };
    calls.set(key, call);
    // The first to hear of the answer, so that none who acts on it joins a call that is over.
    const over = () => forget(key, call);
    call.answer.then(over, over);
    return call;
  }

  return {
    share<Result>(
      key: string,
      { signal, deadlineMs }: WaitBudget,
      start: (shared: SharedWaitBudget) => Promise<Result>,
    ): Promise<Result> {
      if (signal.aborted) return Promise.reject(errorOfAbort(signal));
      if (deadlineMs !== undefined && deadlineMs <= Date.now()) {
        return Promise.reject(deadlinePassed());
      }
      const deadline = deadlineMs ?? Infinity;
      const call = calls.get(key) ?? begin(key, start, deadline);
      call.waiting++;
      call.waitBudget.deadlineMs = Math.max(call.waitBudget.deadlineMs, deadline);
      return new Promise<Result>((resolve, reject) => {
        const leave = (error: GatewayError) => {
          done();
          reject(error);
          if (--call.waiting > 0) return;
          forget(key, call);
          call.abort.abort(error);
        };
        const onAbort = () => leave(errorOfAbort(signal));
        const stopTimer =
          deadlineMs === undefined
            ? undefined
            : startTimer(deadlineMs - Date.now(), () => leave(deadlinePassed()));
        const done = () => {
          signal.removeEventListener("abort", onAbort);
          stopTimer?.();
        };
        signal.addEventListener("abort", onAbort);
        call.answer.then(
          (answer) => {
            done();
            resolve(answer as Result);
          },
          (error: unknown) => {
            done();
            reject(error);
          },
        );
      });
    },
  };
}

function deadlinePassed(): GatewayError {
  return new GatewayError("DEADLINE_EXCEEDED", "the deadline passed");
}

import { UnderWayByName } from "../collections/under-way.ts";
import { errorOfAbort, type GatewayError } from "../errors.ts";
import { startTimer } from "../net/timer.ts";
import { deadlinePassed } from "./outcome.ts";
import type { SendOptions } from "./upstream.ts";

/** How long at least one caller of a shared call waits. */
export interface SharedWaitBudget {
  /** Aborts when no caller waits any more. */
  readonly signal: AbortSignal;
  /** The latest deadline of all callers so far, in milliseconds since the epoch, or Infinity. */
  readonly deadlineMs: () => number;
}

interface SharedCall {
  readonly answer: Promise<unknown>;
  readonly abort: AbortController;
  readonly waitBudget: { deadlineMs: number };
  waiting: number;
}

/** Makes identical calls only once while they are in flight at the same time. */
export class InFlight {
  readonly #calls = new UnderWayByName<SharedCall>();

  /**
   * Joins the call of this key that is in flight, or starts one. Each caller stops waiting by its
   * own signal and deadline. All callers get the same object and must not change it.
   */
  share<Result>(
    key: string,
    { signal, deadlineMs }: Pick<SendOptions, "signal" | "deadlineMs">,
    start: (shared: SharedWaitBudget) => Promise<Result>,
  ): Promise<Result> {
    if (signal.aborted) return Promise.reject(errorOfAbort(signal));
    if (deadlineMs !== undefined && deadlineMs <= Date.now()) {
      return Promise.reject(deadlinePassed());
    }
    const deadline = deadlineMs ?? Infinity;
    const call = this.#calls.get(key) ?? this.#begin(key, start, deadline);
    call.waiting++;
    call.waitBudget.deadlineMs = Math.max(call.waitBudget.deadlineMs, deadline);
    return new Promise<Result>((resolve, reject) => {
      const leave = (error: GatewayError) => {
        done();
        reject(error);
        if (--call.waiting > 0) return;
        this.#forget(key, call);
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
  }

  #begin(
    key: string,
    start: (shared: SharedWaitBudget) => Promise<unknown>,
    deadlineMs: number,
  ): SharedCall {
    const abort = new AbortController();
    const waitBudget = { deadlineMs };
    const answer = start({ signal: abort.signal, deadlineMs: () => waitBudget.deadlineMs });
    const call = { answer, abort, waiting: 0, waitBudget };
    this.#calls.set(key, call);
    // Registered before the callers' handlers, so that a caller that reacts to the answer does not
    // join a call that has ended.
    const over = () => this.#forget(key, call);
    call.answer.then(over, over);
    return call;
  }

  #forget(key: string, call: SharedCall): void {
    if (this.#calls.get(key) === call) this.#calls.delete(key);
  }
}

import { SharedCalls } from "../collections/shared-calls.ts";
import { errorOfAbort, unlessAborted } from "../errors.ts";
import { startTimer } from "../net/timer.ts";
import { deadlinePassed } from "./outcome.ts";
import type { SendOptions } from "./upstream.ts";

/** How long at least one caller of a shared call waits. */
export interface SharedWaitBudget {
  /** Aborts when no caller waits any more. */
  readonly signal: AbortSignal;
  /** The latest deadline of all callers so far, in milliseconds since the epoch, or Infinity. */
  deadlineMs: number;
}

interface SharedCall {
  readonly answer: Promise<unknown>;
  readonly waitBudget: SharedWaitBudget;
}

/** Makes identical calls only once while they are in flight at the same time. */
export class InFlight {
  readonly #calls = new SharedCalls<SharedCall>();

  /**
   * Joins the call of this key that is in flight, or starts one. Each caller stops waiting by its
   * own signal and deadline. All callers get the same object and must not change it.
   */
  async share<Result>(
    key: string,
    { signal, deadlineMs = Infinity }: Pick<SendOptions, "signal" | "deadlineMs">,
    start: (shared: SharedWaitBudget) => Promise<Result>,
  ): Promise<Result> {
    if (signal.aborted) throw errorOfAbort(signal);
    if (deadlineMs <= Date.now()) throw deadlinePassed();
    const gone = new AbortController();
    const onAbort = () => gone.abort(errorOfAbort(signal));
    signal.addEventListener("abort", onAbort);
    const stopTimer = startTimer(deadlineMs - Date.now(), () => gone.abort(deadlinePassed()));
    try {
      const { answer, waitBudget } = this.#calls.join(key, gone.signal, (shared) => {
        const waitBudget = { signal: shared, deadlineMs };
        return { answer: start(waitBudget), waitBudget };
      });
      waitBudget.deadlineMs = Math.max(waitBudget.deadlineMs, deadlineMs);
      return (await unlessAborted(answer, gone.signal)) as Result;
    } finally {
      signal.removeEventListener("abort", onAbort);
      stopTimer();
    }
  }
}

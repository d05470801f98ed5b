import { errorOfAbort } from "../errors.ts";
import { ByAge } from "./by-age.ts";

/** Calls under way that several callers may wait for, by name. */
export class SharedCalls<Call extends { readonly answer: Promise<unknown> }> {
  readonly #underWay = new ByAge<Shared<Call>>();

  /** The call of this name that a caller would join. */
  get(name: string): Call | undefined {
    return this.#underWay.get(name)?.call;
  }

  /**
   * Joins the call of this name, or starts one. A caller leaves when its own signal aborts; the
   * signal given to `start` aborts when all callers have left.
   * @param stays whether a call that all have left may still be joined. Default: no; the next
   * caller starts a new one
   */
  join(
    name: string,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Call,
    stays: (call: Call) => boolean = () => false,
  ): Call {
    const shared = this.#underWay.get(name) ?? this.#begin(name, start);
    shared.callers++;
    const leave = () => {
      if (--shared.callers > 0) return;
      if (!stays(shared.call)) this.#forget(name, shared);
      shared.abort.abort(errorOfAbort(signal));
    };
    signal.addEventListener("abort", leave, { once: true });
    const done = () => signal.removeEventListener("abort", leave);
    shared.call.answer.then(done, done);
    return shared.call;
  }

  #begin(name: string, start: (signal: AbortSignal) => Call): Shared<Call> {
    const abort = new AbortController();
    const shared = { call: start(abort.signal), abort, callers: 0 };
    this.#underWay.set(name, shared);
    // Registered before the callers' handlers, so that a caller that reacts to the answer does not
    // join a call that has ended.
    const over = () => this.#forget(name, shared);
    shared.call.answer.then(over, over);
    return shared;
  }

  #forget(name: string, shared: Shared<Call>): void {
    if (this.#underWay.get(name) === shared) this.#underWay.delete(name);
  }
}

interface Shared<Call> {
  readonly call: Call;
  readonly abort: AbortController;
  callers: number;
}

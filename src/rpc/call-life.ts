import type { Member, UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import type { RequestHead } from "../net/request-head.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";

/**
 * The lifetime of a call. Its signal aborts at the call's deadline, when the caller leaves or when
 * the gateway shuts down, and for a stream also when its connection must end (`endWith`). It does
 * not abort after `end`, when the call has ended by itself.
 */
export class CallLife {
  readonly #controller = new AbortController();
  readonly #member: Member<AbortController>;
  #timer: NodeJS.Timeout | undefined;
  #ending: AbortSignal | undefined;
  #onEnding: (() => void) | undefined;

  constructor(
    head: RequestHead,
    timeoutMs: number | undefined,
    underWay: UnderWay<AbortController>,
  ) {
    this.#member = underWay.add(this.#controller);
    if (timeoutMs !== undefined) this.#endAfter(timeoutMs);
    head.onClose(() => {
      if (!this.#member.hasLeft) leaveInTurn(() => this.#leave());
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Also aborts when `ending` does, with the same reason. */
  endWith(ending: AbortSignal | undefined): void {
    if (!ending) return;
    this.#ending = ending;
    this.#onEnding = () => this.#abort(ending.reason);
    if (ending.aborted) this.#onEnding();
    else ending.addEventListener("abort", this.#onEnding);
  }

  end(): void {
    this.#member.leave();
    clearTimeout(this.#timer);
    if (this.#onEnding) this.#ending?.removeEventListener("abort", this.#onEnding);
  }

  #leave(): void {
    if (!this.#member.hasLeft) this.#abort(new GatewayError("CANCELLED", "the caller went away"));
  }

  #endAfter(timeoutMs: number): void {
    const end = () => this.#abort(new DOMException("the deadline passed", "TimeoutError"));
    if (timeoutMs > 0) this.#timer = setTimeout(end, timeoutMs);
    else end();
  }

  #abort(reason: unknown): void {
    this.#controller.abort(reason);
  }
}

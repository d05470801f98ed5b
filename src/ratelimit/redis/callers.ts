import { errorOfAbort, type GatewayError } from "../../errors.ts";
import type { Permit, Priority } from "../bucket.ts";
import { deadlineError, exhaustedError } from "../refusals.ts";
import { type Place, WaitingLine } from "../waiting-line.ts";

/** A caller that waits for a token. Times are on the monotonic clock. */
export interface Caller {
  readonly priority: Priority;
  /** End of the longest wait. */
  readonly patientUntil: number;
  /** End of the caller's own patience. */
  readonly deadlineAt: number;
  grant(permit: Permit): void;
  fail(error: GatewayError): void;
}

/** When the caller with `ahead` others before it will be served, as things stand. */
export type TurnAt = (priority: Priority, ahead: number, now: number) => number;

/** The callers of this process that wait: money before reads, each in the order they came. */
export class Callers {
  readonly #lines = { money: new WaitingLine<Caller>(), read: new WaitingLine<Caller>() };
  readonly #onLeave: () => void;

  /** `onLeave` hears of each caller that went away by itself. */
  constructor(onLeave: () => void) {
    this.#onLeave = onLeave;
  }

  get money(): number {
    return this.#lines.money.size;
  }

  get reads(): number {
    return this.#lines.read.size;
  }

  get size(): number {
    return this.money + this.reads;
  }

  get first(): Caller | undefined {
    return this.#lines.money.first ?? this.#lines.read.first;
  }

  /** However a caller is settled, it leaves its line and the signal. */
  join(
    caller: Pick<Caller, "priority" | "patientUntil" | "deadlineAt">,
    signal: AbortSignal,
  ): Promise<Permit> {
    return new Promise((resolve, reject) => {
      const line = this.#lines[caller.priority];
      const leave = () => {
        line.remove(place);
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        place.value.fail(errorOfAbort(signal));
        this.#onLeave();
      };
      const place: Place<Caller> = line.join({
        ...caller,
        grant(permit) {
          leave();
          resolve(permit);
        },
        fail(error) {
          leave();
          reject(error);
        },
      });
      signal.addEventListener("abort", onAbort);
    });
  }

  /** The next to be served of one line or, without a priority, of both; the late ones are refused. */
  next(now: number, priority?: Priority): Caller | undefined {
    for (;;) {
      const caller = priority ? this.#lines[priority].first : this.first;
      if (!caller || caller.deadlineAt > now) return caller;
      caller.fail(deadlineError());
    }
  }

  /** Refuses at once all whose turn will come too late, rather than let them wait for it. */
  review(turnAt: TurnAt, now: number): void {
    let ahead = 0;
    for (const caller of this) {
      const at = turnAt(caller.priority, ahead, now);
      if (caller.deadlineAt <= now) caller.fail(deadlineError());
      else if (at > caller.deadlineAt || at > caller.patientUntil + PATIENCE_SLACK_MS) {
        caller.fail(exhaustedError(at - now));
      } else ahead++;
    }
  }

  failAll(error: () => GatewayError): void {
    for (const caller of this) caller.fail(error());
  }

  *[Symbol.iterator](): Iterator<Caller> {
    yield* this.#lines.money;
    yield* this.#lines.read;
  }
}

/** Estimates swing by a timer's lateness; who was admitted is not refused for that. */
const PATIENCE_SLACK_MS = 50;

import { errorOfAbort, GatewayError, shuttingDown } from "../errors.ts";
import type { Permit, Priority, TakeOptions } from "./bucket.ts";
import type { Clock } from "./clock.ts";
import { keyOf, Turns } from "./turns.ts";

/** A call that waits for a token. */
export interface Waiter {
  readonly priority: Priority;
  /** The caller's deadline, on the monotonic clock. */
  readonly deadlineAt: number;
  grant(permit: Permit): void;
  fail(error: GatewayError): void;
}

export interface WaitQueueOptions {
  readonly clock: Clock;
  /** Longest a call queues, in milliseconds. */
  readonly maxWaitMs: number;
  /** Estimates when a call gets its token if `ahead` tokens go to others first. */
  readonly turnAt: (priority: Priority, ahead: number, now: number) => number;
  /** Called for each call that joins, unless it is a read behind others of its caller. */
  readonly onJoin: (now: number) => void;
}

/** The waiting calls of this process: money before reads, and within each, callers in turns. */
export class WaitQueue {
  readonly turns = { money: new Turns<Waiter>(), read: new Turns<Waiter>() };
  closed = false;
  readonly #options: WaitQueueOptions;

  constructor(options: WaitQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.turns.money.size + this.turns.read.size;
  }

  /** @throws GatewayError for a call that cannot wait. @returns its deadline, monotonic */
  check({ signal, deadlineMs }: TakeOptions, now: number): number {
    if (this.closed) throw shuttingDown();
    if (signal.aborted) throw errorOfAbort(signal);
    const deadlineAt = now + (deadlineMs ?? Infinity) - this.#options.clock.epoch();
    if (deadlineAt <= now) throw deadlineError();
    return deadlineAt;
  }

  /** Whether no waiting call would be served before a new one of this priority. */
  isFree(priority: Priority): boolean {
    const { money, read } = this.turns;
    return money.size === 0 && (priority === "money" || read.size === 0);
  }

  /**
   * Adds a call. When it is granted or fails, it leaves the queue and its signal's listeners. It
   * fails at its deadline, or when it has waited as long as a call may.
   * @param deadlineAt as `check` returned it
   * @throws GatewayError RESOURCE_EXHAUSTED if its turn would come too late
   */
  join(
    { priority, signal, caller }: TakeOptions,
    deadlineAt: number,
    now: number,
  ): Promise<Permit> {
    const { clock, maxWaitMs, onJoin } = this.#options;
    const turns = this.turns[priority];
    const key = keyOf(caller);
    const own = turns.callsOf(key)?.size ?? 0;
    const waitMs = this.#waitMs(priority, key, own, now);
    const deadlineMs = deadlineAt - now;
    if (waitMs > Math.min(maxWaitMs, deadlineMs)) throw exhaustedError(waitMs);
    // A read behind others of its caller changes nothing: it is served, and asked for, after them.
    if (priority === "money" || own === 0) onJoin(now);
    return new Promise((resolve, reject) => {
      const leave = (served: boolean) => {
        stopTimer();
        turns.remove(key, waiter, { served });
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => waiter.fail(errorOfAbort(signal));
      const endsMs = Math.min(deadlineMs, maxWaitMs + slackMs);
      const onEnd = () => {
        if (endsMs === deadlineMs) waiter.fail(deadlineError());
        else waiter.fail(exhaustedError(this.#waitMs(priority, key, 0, clock.now())));
      };
      const waiter: Waiter = {
        ...{ priority, deadlineAt },
        grant(permit) {
          leave(true);
          resolve(permit);
        },
        fail(error) {
          leave(false);
          reject(error);
        },
      };
      turns.add(key, waiter);
      signal.addEventListener("abort", onAbort);
      const stopTimer = clock.after(endsMs, onEnd);
    });
  }

  /**
   * The call that gets the next token: a token for reads goes to money first, one for money may come
   * from the reserve and goes to no read. It goes to this caller if it is the turn of its line. Fails
   * calls whose deadline has passed.
   */
  next(now: number, priority: Priority = "read", caller?: string): Waiter | undefined {
    for (;;) {
      const goesTo = this.turns.money.size > 0 ? "money" : priority;
      const turns = this.turns[goesTo];
      const own = caller && goesTo === priority ? turns.callsOf(caller)?.oldest : undefined;
      const waiter = own ?? turns.first;
      if (!waiter || waiter.deadlineAt > now) return waiter;
      waiter.fail(deadlineError());
    }
  }

  /** Fails all waiting calls, and every later one. */
  close(): void {
    this.closed = true;
    for (const { callers } of Object.values(this.turns)) {
      for (const [, calls] of callers) {
        for (let first = calls.oldest; first; first = calls.oldest) first.fail(shuttingDown());
      }
    }
  }

  /** How long a call waits, about, behind `own` others of its caller and the turns of all others. */
  #waitMs(priority: Priority, key: string, own: number, now: number): number {
    const { money, read } = this.turns;
    const isMoney = priority === "money";
    const ahead = isMoney ? money.ahead(key, own) : money.size + read.ahead(key, own);
    return this.#options.turnAt(priority, ahead, now) - now;
  }
}

/** Late timers shift estimates by so much: an admitted call is not refused for that. */
const slackMs = 50;

function exhaustedError(retryAfterMs: number): GatewayError {
  return new GatewayError("RESOURCE_EXHAUSTED", "the request budget is used up, retry later", {
    reason: "RATE_LIMITED",
    retryAfterMs: Math.max(1, Math.ceil(retryAfterMs)),
  });
}

function deadlineError(): GatewayError {
  return new GatewayError("DEADLINE_EXCEEDED", "the deadline passed before the call was sent");
}

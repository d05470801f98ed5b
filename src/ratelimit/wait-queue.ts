import { errorOfAbort, GatewayError } from "../errors.ts";
import type { Permit, Priority, TakeOptions } from "./bucket.ts";
import type { Clock } from "./clock.ts";
import { type CallerLine, keyOf, Turns } from "./turns.ts";

/** A call that waits for a token. Times are on the monotonic clock. */
export interface Waiter {
  readonly priority: Priority;
  /** End of the longest wait. */
  readonly maxWaitUntil: number;
  /** End of the caller's own wait budget. */
  readonly deadlineAt: number;
  grant(permit: Permit): void;
  fail(error: GatewayError): void;
}

/** When a call before which `ahead` tokens go to others gets its own, as things stand. */
export type TurnAt = (priority: Priority, ahead: number, now: number) => number;

export interface WaitQueueOptions {
  readonly clock: Clock;
  /** Longest a call queues, in milliseconds. */
  readonly maxWaitMs: number;
  /** Called for each call that went away by itself. */
  readonly onLeave: () => void;
}

/** The calls of this process that wait: money before reads, and within each, callers in turns. */
export class WaitQueue {
  readonly turns = { money: new Turns<Waiter>(), read: new Turns<Waiter>() };
  /** End of the longest wait of the call that came last. */
  maxWaitUntil = -Infinity;
  readonly #options: WaitQueueOptions;
  #reviewedAt = -Infinity;
  #reviewDue = false;
  #closed = false;

  constructor(options: WaitQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.turns.money.size + this.turns.read.size;
  }

  /** @throws GatewayError for a call that cannot begin to wait. @returns its deadline, monotonic */
  check({ signal, deadlineMs }: TakeOptions, now: number): number {
    if (this.#closed) throw closedError();
    if (signal.aborted) throw errorOfAbort(signal);
    const deadlineAt = now + (deadlineMs ?? Infinity) - this.#options.clock.epoch();
    if (deadlineAt <= now) throw deadlineError();
    return deadlineAt;
  }

  /** Whether nobody waits who would be served before a new call of this priority. */
  isFree(priority: Priority): boolean {
    const { money, read } = this.turns;
    return money.size === 0 && (priority === "money" || read.size === 0);
  }

  /** Whether none of this caller's calls of this priority waits. */
  isNew({ priority, caller }: TakeOptions): boolean {
    const turns = this.turns[priority];
    return turns.size === 0 || turns.sizeOf(keyOf(caller)) === 0;
  }

  /**
   * However a call is settled, it leaves the queue and the signal.
   * @throws GatewayError RESOURCE_EXHAUSTED for one whose turn would come too late
   */
  join(options: TakeOptions, turnAt: TurnAt, now: number): Promise<Permit> {
    const { priority, signal } = options;
    const deadlineAt = this.check(options, now);
    const maxWaitUntil = now + this.#options.maxWaitMs;
    const turns = this.turns[priority];
    const key = keyOf(options.caller);
    const own = turns.sizeOf(key);
    const at = turnAt(priority, this.#ahead(priority, key, own), now);
    if (at > Math.min(maxWaitUntil, deadlineAt)) throw exhaustedError(at - now);
    this.maxWaitUntil = maxWaitUntil;
    // Whoever is new makes others wait for longer.
    if (this.size > 0 && (priority === "money" || own === 0)) this.reviewSoon();
    return new Promise((resolve, reject) => {
      const leave = (served: boolean) => {
        turns.remove(key, waiter, { served });
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => {
        waiter.fail(errorOfAbort(signal));
        this.#options.onLeave();
      };
      const waiter: Waiter = {
        ...{ priority, maxWaitUntil, deadlineAt },
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
    });
  }

  /** The next to be served: of this caller, else of this priority, else of all. Late ones are refused. */
  next(now: number, priority?: Priority, line?: CallerLine<Waiter>): Waiter | undefined {
    const { money, read } = this.turns;
    for (;;) {
      const first = priority ? this.turns[priority].first : (money.first ?? read.first);
      const waiter = line?.first ?? first;
      if (!waiter || waiter.deadlineAt > now) return waiter;
      waiter.fail(deadlineError());
    }
  }

  /** Estimates have changed for the worse: those whose turn will come too late are refused soon. */
  reviewSoon(): void {
    this.#reviewDue = true;
  }

  /** Refuses at once all whose turn will come too late, rather than let them wait for it. */
  review(turnAt: TurnAt, now: number): void {
    this.#reviewedAt = now;
    this.#reviewDue = false;
    for (const { key, calls } of this.#lines) {
      let own = 0;
      for (const waiter of calls) {
        const { priority, deadlineAt, maxWaitUntil } = waiter;
        const at = turnAt(priority, this.#ahead(priority, key, own), now);
        if (deadlineAt <= now) waiter.fail(deadlineError());
        else if (at > deadlineAt || at > maxWaitUntil + slackMs) {
          waiter.fail(exhaustedError(at - now));
        } else own++;
      }
    }
  }

  reviewIfDue(turnAt: TurnAt, now: number): void {
    if (this.#reviewDue && now >= this.#reviewedAt + reviewEveryMs) this.review(turnAt, now);
  }

  /** When there is something to do even if no token comes. */
  get dueAt(): number {
    const first = this.turns.money.first ?? this.turns.read.first;
    if (!first) return Infinity;
    const reviewAt = this.#reviewDue ? this.#reviewedAt + reviewEveryMs : Infinity;
    return Math.min(first.deadlineAt, reviewAt);
  }

  /** Fails all who wait, and who comes after. */
  close(): void {
    this.#closed = true;
    for (const { calls } of this.#lines) for (const waiter of calls) waiter.fail(closedError());
  }

  get #lines(): CallerLine<Waiter>[] {
    return [...this.turns.money.lines, ...this.turns.read.lines];
  }

  #ahead(priority: Priority, key: string, own: number): number {
    const { money, read } = this.turns;
    return priority === "money" ? money.ahead(key, own) : money.total + read.ahead(key, own);
  }
}

/** A review walks the whole queue, so it is not for every call. */
const reviewEveryMs = 20;

/** Estimates swing by a timer's lateness; who was admitted is not refused for that. */
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

function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the gateway is shutting down");
}

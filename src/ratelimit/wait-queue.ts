import { errorOfAbort, GatewayError } from "../errors.ts";
import type { Permit, Priority, TakeOptions } from "./bucket.ts";
import type { Clock } from "./clock.ts";
import { keyOf, Turns } from "./turns.ts";

/** A call that waits for a token. Times are on the monotonic clock. */
export interface Waiter {
  readonly priority: Priority;
  /** When the longest wait ends. */
  readonly maxWaitUntil: number;
  /** The caller's deadline. */
  readonly deadlineAt: number;
  grant(permit: Permit): void;
  fail(error: GatewayError): void;
}

/** Estimates when a call gets its token if `ahead` tokens go to others first. */
export type TurnAt = (priority: Priority, ahead: number, now: number) => number;

export interface WaitQueueOptions {
  readonly clock: Clock;
  /** Longest a call queues, in milliseconds. */
  readonly maxWaitMs: number;
  readonly turnAt: TurnAt;
  /** Called for each call that joins, unless it is a read behind others of its caller. */
  readonly onJoin: (now: number) => void;
}

/** The waiting calls of this process: money before reads, and within each, callers in turns. */
export class WaitQueue {
  readonly turns = { money: new Turns<Waiter>(), read: new Turns<Waiter>() };
  closed = false;
  readonly #options: WaitQueueOptions;
  #reviewedAt = -Infinity;

  constructor(options: WaitQueueOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.turns.money.size + this.turns.read.size;
  }

  /** @throws GatewayError for a call that cannot wait. @returns its deadline, monotonic */
  check({ signal, deadlineMs }: TakeOptions, now: number): number {
    if (this.closed) throw closedError();
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
   * Adds a call. When it is granted or fails, it leaves the queue and its signal's listeners.
   * @param deadlineAt as `check` returned it
   * @throws GatewayError RESOURCE_EXHAUSTED if its turn would come too late
   */
  join(
    { priority, signal, caller }: TakeOptions,
    deadlineAt: number,
    now: number,
  ): Promise<Permit> {
    const maxWaitUntil = now + this.#options.maxWaitMs;
    const turns = this.turns[priority];
    const key = keyOf(caller);
    const own = turns.callsOf(key)?.size ?? 0;
    const at = this.#options.turnAt(priority, this.#ahead(priority, key, own), now);
    if (at > Math.min(maxWaitUntil, deadlineAt)) throw exhaustedError(at - now);
    // A read behind others of its caller changes nothing: it is served, and asked for, after them.
    if (priority === "money" || own === 0) this.#options.onJoin(now);
    return new Promise((resolve, reject) => {
      const leave = (served: boolean) => {
        turns.remove(key, waiter, { served });
        signal.removeEventListener("abort", onAbort);
      };
      const onAbort = () => waiter.fail(errorOfAbort(signal));
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

  /** Refuses at once all calls whose turn will come too late, rather than let them wait for it. */
  review(now: number): void {
    this.#reviewedAt = now;
    for (const [key, calls] of this.#callers) {
      let own = 0;
      calls.fromOldest((waiter) => {
        const { priority, deadlineAt, maxWaitUntil } = waiter;
        const at = this.#options.turnAt(priority, this.#ahead(priority, key, own), now);
        if (deadlineAt <= now) waiter.fail(deadlineError());
        else if (at > deadlineAt || at > maxWaitUntil + slackMs) {
          waiter.fail(exhaustedError(at - now));
        } else own++;
        return true;
      });
    }
  }

  reviewIfDue(now: number): void {
    if (this.size > 0 && now >= this.#reviewedAt + reviewEveryMs) this.review(now);
  }

  /** When the queue has something to do even if no token comes. */
  get dueAt(): number {
    const first = this.turns.money.first ?? this.turns.read.first;
    if (!first) return Infinity;
    return Math.min(first.deadlineAt, this.#reviewedAt + reviewEveryMs);
  }

  /** Fails all waiting calls, and every later one. */
  close(): void {
    this.closed = true;
    for (const [, calls] of this.#callers) {
      for (let first = calls.oldest; first; first = calls.oldest) first.fail(closedError());
    }
  }

  get #callers() {
    return [...this.turns.money.callers, ...this.turns.read.callers];
  }

  #ahead(priority: Priority, key: string, own: number): number {
    const { money, read } = this.turns;
    return priority === "money" ? money.ahead(key, own) : money.size + read.ahead(key, own);
  }
}

/** Shortest time between reviews in milliseconds: each one walks the whole queue. */
const reviewEveryMs = 20;

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

function closedError(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the gateway is shutting down");
}

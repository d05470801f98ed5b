import { errorOfAbort, GatewayError } from "../../errors.ts";
import type {
  Permit,
  Priority,
  RateLimitStatus,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "../bucket.ts";
import { type Clock, systemClock } from "../clock.ts";
import { type Place, WaitingLine } from "../waiting-line.ts";
import { Budget } from "./budget.ts";

export interface LocalBucketOptions extends TokenBucketOptions {
  /**
   * Part of the upstream's limit that this process may use, over 0 to 1: 0.8 divided by the number
   * of replicas when each must go on alone. Limit, capacity and status are of that part. Default: 1.
   */
  readonly share?: number;
  /**
   * Begin without tokens; they come within the first second. For a bucket that takes over from
   * another, which may just have spent them. Default: false, begin full.
   */
  readonly startEmpty?: boolean;
  /** Default: the machine's clocks. */
  readonly clock?: Clock;
}

/** A token bucket in this process's memory: for one process alone, or for a share of the limit. */
export function createLocalBucket(options: LocalBucketOptions): TokenBucket {
  return new LocalBucket(options);
}

interface Waiter {
  readonly priority: Priority;
  /** End of the longest wait, on the monotonic clock. */
  readonly patientUntil: number;
  /** End of the caller's own patience, on the monotonic clock. */
  readonly deadlineAt: number;
  grant(permit: Permit): void;
  fail(error: GatewayError): void;
}

class LocalBucket implements TokenBucket {
  readonly #clock: Clock;
  readonly #maxWaitMs: number;
  readonly #budget: Budget;
  readonly #money = new WaitingLine<Waiter>();
  readonly #reads = new WaitingLine<Waiter>();
  #closed = false;
  /** Who waits is served no faster than this, so that one burst does not become another. */
  #pacedAt = -Infinity;
  #reviewedAt = -Infinity;
  #reviewDue = false;
  #wakeAt = Infinity;
  #cancelTimer: (() => void) | undefined;

  constructor(options: LocalBucketOptions) {
    this.#clock = options.clock ?? systemClock;
    this.#maxWaitMs = options.maxWaitMs;
    this.#budget = new Budget(options, this.#clock.now());
  }

  async take({ priority, signal, deadlineMs }: TakeOptions): Promise<Permit> {
    if (this.#closed) throw closedError();
    if (signal.aborted) throw errorOfAbort(signal);
    const now = this.#clock.now();
    const deadlineAt = now + (deadlineMs ?? Infinity) - this.#clock.epoch();
    if (deadlineAt <= now) throw deadlineError();

    const ahead = this.#money.size + (priority === "read" ? this.#reads.size : 0);
    if (ahead === 0 && this.#budget.nextTokenAt(priority, 0, now) <= now) return this.#permit(now);

    const patientUntil = now + this.#maxWaitMs;
    const at = this.#turnAt(priority, ahead, now);
    if (at > Math.min(patientUntil, deadlineAt)) throw exhaustedError(at - now);
    return await new Promise<Permit>((resolve, reject) => {
      this.#enqueue({ priority, patientUntil, deadlineAt, grant: resolve, fail: reject }, signal);
      if (priority === "money" && this.#reads.size > 0) this.#reviewDue = true;
      this.#schedule(now);
    });
  }

  status(): RateLimitStatus {
    return this.#budget.status(this.#clock.now());
  }

  async close(): Promise<void> {
    this.#closed = true;
    for (const line of [this.#money, this.#reads]) {
      for (const waiter of line) waiter.fail(closedError());
    }
    this.#schedule(this.#clock.now());
  }

  #permit(now: number): Permit {
    const taken = this.#budget.take(now);
    let settled = false;
    const settleOnce = (settle: (at: number) => void) => {
      if (settled) return;
      settled = true;
      const at = this.#clock.now();
      settle(at);
      this.#serve();
    };
    return {
      observe: (answer) =>
        settleOnce((at) => {
          if (this.#budget.observe(taken, answer, at)) this.#reviewDue = true;
        }),
      rejected: (answer) =>
        settleOnce((at) => {
          this.#budget.reject(taken, answer, at);
          this.#review(at);
        }),
      release: () => settleOnce(() => this.#budget.giveBack(taken)),
    };
  }

  /** Puts a waiter in line; however it is settled, it leaves the line and the signal. */
  #enqueue(waiter: Waiter, signal: AbortSignal): void {
    const line = waiter.priority === "money" ? this.#money : this.#reads;
    const leave = () => {
      line.remove(place);
      signal.removeEventListener("abort", onAbort);
    };
    const onAbort = () => {
      place.value.fail(errorOfAbort(signal));
      this.#schedule(this.#clock.now());
    };
    const place: Place<Waiter> = line.join({
      ...waiter,
      grant(permit) {
        leave();
        waiter.grant(permit);
      },
      fail(error) {
        leave();
        waiter.fail(error);
      },
    });
    signal.addEventListener("abort", onAbort);
  }

  /** Hands out what can be had now, and sets the timer for the rest. */
  #serve(): void {
    const now = this.#clock.now();
    for (let head = this.#head; head; head = this.#head) {
      if (head.deadlineAt <= now) {
        head.fail(deadlineError());
        continue;
      }
      if (this.#turnAt(head.priority, 0, now) > now) break;
      const from = Math.max(this.#pacedAt, now - CATCH_UP_MS);
      this.#pacedAt = from + this.#budget.intervalMs(now);
      head.grant(this.#permit(now));
    }
    if (now >= this.#reviewedAt + REVIEW_EVERY_MS) this.#review(now);
    this.#schedule(now);
  }

  get #head(): Waiter | undefined {
    return this.#money.first ?? this.#reads.first;
  }

  /** When the waiter with `ahead` others before it will be served, as things stand. */
  #turnAt(priority: Priority, ahead: number, now: number): number {
    const first = this.#money.size > 0 ? "money" : priority;
    const firstAt = Math.max(this.#pacedAt, this.#budget.nextTokenAt(first, 0, now));
    if (ahead === 0) return firstAt;
    return Math.max(
      Math.max(firstAt, now) + ahead * this.#budget.intervalMs(now),
      this.#budget.nextTokenAt(priority, ahead, now),
    );
  }

  /** Refuses at once all whose turn will now come too late, rather than let them wait for it. */
  #review(now: number): void {
    this.#reviewedAt = now;
    this.#reviewDue = false;
    let ahead = 0;
    for (const line of [this.#money, this.#reads]) {
      for (const waiter of line) {
        const at = this.#turnAt(waiter.priority, ahead, now);
        const tooLate = at > waiter.deadlineAt || at > waiter.patientUntil + PATIENCE_SLACK_MS;
        if (tooLate) waiter.fail(exhaustedError(at - now));
        else ahead++;
      }
    }
  }

  /** Keeps the one timer: for the head of the line, or for a review that is due before. */
  #schedule(now: number): void {
    const head = this.#head;
    const turnAt = head ? Math.min(this.#turnAt(head.priority, 0, now), head.deadlineAt) : Infinity;
    const reviewAt = head && this.#reviewDue ? this.#reviewedAt + REVIEW_EVERY_MS : Infinity;
    const wakeAt = Math.min(turnAt, reviewAt);
    if (wakeAt === this.#wakeAt) return;
    this.#cancelTimer?.();
    this.#cancelTimer = undefined;
    this.#wakeAt = wakeAt;
    if (wakeAt === Infinity) return;
    this.#cancelTimer = this.#clock.after(Math.max(1, Math.ceil(wakeAt - now)), () => {
      this.#wakeAt = Infinity;
      this.#serve();
    });
  }
}

/** Late timers are made up for by this much, or the rate would suffer from each. */
const CATCH_UP_MS = 50;

/** A review walks the whole line, so it is not for every call. */
const REVIEW_EVERY_MS = 20;

/** Estimates swing by a timer's lateness; who was admitted is not refused for that. */
const PATIENCE_SLACK_MS = 50;

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

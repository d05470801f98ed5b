import type {
  Permit,
  RateLimitStatus,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "../bucket.ts";
import { Alarm, type Clock, systemClock } from "../clock.ts";
import { settledOnce } from "../permit.ts";
import { type TurnAt, WaitQueue } from "../wait-queue.ts";
import { Budget, type Taken } from "./budget.ts";

export interface LocalBucketOptions extends TokenBucketOptions {
  /** Default: the machine's clocks. */
  readonly clock?: Clock;
}

/** A token bucket in this process's memory, for one process alone. */
export function createLocalBucket(options: LocalBucketOptions): TokenBucket {
  return new LocalBucket(options);
}

class LocalBucket implements TokenBucket {
  readonly #clock: Clock;
  readonly #budget: Budget;
  readonly #queue: WaitQueue;
  readonly #alarm: Alarm;
  readonly #turnAt: TurnAt = (...call) => this.#budget.turnAt(...call);

  constructor(options: LocalBucketOptions) {
    const { clock = systemClock } = options;
    this.#clock = clock;
    this.#budget = new Budget(options, clock.now());
    this.#queue = new WaitQueue({ ...options, clock, onLeave: () => this.#schedule(clock.now()) });
    this.#alarm = new Alarm(clock, () => this.#serve());
  }

  async take(options: TakeOptions): Promise<Permit> {
    const now = this.#clock.now();
    this.#queue.check(options, now);
    const { priority } = options;
    const { money, read } = this.#queue.turns;
    const clear = money.size + (priority === "read" ? read.size : 0) === 0;
    if (clear && this.#budget.nextTokenAt(priority, 0, now) <= now) {
      return this.#permit(this.#budget.take(now));
    }
    const permit = this.#queue.join(options, this.#turnAt, now);
    this.#schedule(now);
    return await permit;
  }

  status(): RateLimitStatus {
    return this.#budget.status(this.#clock.now());
  }

  async close(): Promise<void> {
    this.#queue.close();
    this.#alarm.set(Infinity, 0);
  }

  #permit(taken: Taken): Permit {
    const budget = this.#budget;
    return settledOnce({
      observe: (answer) => {
        if (budget.observe(taken, answer, this.#clock.now())) this.#queue.reviewSoon();
        this.#serve();
      },
      rejected: (answer) => {
        const now = this.#clock.now();
        budget.reject(taken, answer, now);
        this.#queue.review(this.#turnAt, now);
        this.#serve();
      },
      release: () => {
        budget.giveBack(taken);
        this.#serve();
      },
    });
  }

  /** Hands out what can be had now, and sets the alarm for the rest. */
  #serve(): void {
    const now = this.#clock.now();
    for (let first = this.#queue.next(now); first; first = this.#queue.next(now)) {
      if (this.#budget.turnAt(first.priority, 0, now) > now) break;
      first.grant(this.#permit(this.#budget.takePaced(now)));
    }
    this.#queue.reviewIfDue(this.#turnAt, now);
    this.#schedule(now);
  }

  #schedule(now: number): void {
    const first = this.#queue.next(now);
    const turnAt = first ? this.#budget.turnAt(first.priority, 0, now) : Infinity;
    this.#alarm.set(Math.min(turnAt, this.#queue.dueAt), now);
  }
}

import type { Priority, RateLimitStatus } from "../bucket.ts";
import { Budget, type Taken } from "../local/budget.ts";

/**
 * What one replica may use while it cannot reach the others: its part of 0.8 of the limit. It
 * begins without tokens, since the others may just have spent them, and serves evenly.
 */
export class LoneShare {
  readonly budget: Budget;
  #pacedAt = -Infinity;

  constructor(limit: number, replicas: number, reserve: number, now: number) {
    const share = ALONE_SHARE / Math.max(1, replicas);
    this.budget = new Budget({ initialLimit: limit, reserve, share, startEmpty: true }, now);
  }

  /** When the caller with `ahead` others before it can be served. */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const first = Math.max(this.#pacedAt, this.budget.nextTokenAt(priority, 0, now));
    if (ahead === 0) return first;
    const inTurn = Math.max(first, now) + ahead * this.budget.intervalMs(now);
    return Math.max(inTurn, this.budget.nextTokenAt(priority, ahead, now));
  }

  take(now: number): Taken {
    this.#pacedAt = Math.max(this.#pacedAt, now - CATCH_UP_MS) + this.budget.intervalMs(now);
    return this.budget.take(now);
  }

  status(now: number): RateLimitStatus {
    return this.budget.status(now);
  }
}

/** Part of the limit that all replicas use together while each is alone; as in take-tokens.lua. */
const ALONE_SHARE = 0.8;

/** Late timers are made up for by this much. */
const CATCH_UP_MS = 50;

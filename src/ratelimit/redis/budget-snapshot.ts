import type { Priority, RateLimitStatus } from "../bucket.ts";
import type { TakeReply } from "./shared-budget.ts";

/** What Redis's last reply says of the time until the next one. Times are on the monotonic clock. */
export class BudgetSnapshot {
  readonly #reply: TakeReply;
  readonly at: number;

  constructor(reply: TakeReply, now: number) {
    this.#reply = reply;
    this.at = now;
  }

  /** Whether some call got no token. */
  get short(): boolean {
    return this.#reply.money.unmet + this.#reply.read.unmet > 0;
  }

  /** Whether tokens are kept for this replica. */
  get placed(): boolean {
    return this.#reply.placed;
  }

  /** When a call before which `ahead` tokens go to others gets its own; long ago if none is short. */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const { money, read, intervalMs } = this.#reply;
    if (money.unmet + (priority === "read" ? read.unmet : 0) === 0) return -Infinity;
    return Math.max(now, this.at + this.#reply[priority].nextMs) + ahead * intervalMs;
  }

  status(now: number): RateLimitStatus {
    const { limit, remaining, fullMs } = this.#reply;
    const fullInMs = Math.max(0, this.at + fullMs - now);
    return {
      limit,
      remaining: fullInMs === 0 ? limit : remaining,
      resetSeconds: Math.ceil(fullInMs / 1_000),
    };
  }
}

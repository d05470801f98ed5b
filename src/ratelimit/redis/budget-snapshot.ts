import type { Priority, RateLimitStatus } from "../bucket.ts";
import type { TakeReply } from "./shared-budget.ts";

/** Redis's last reply, to estimate by until the next one. Times are on the monotonic clock. */
export class BudgetSnapshot {
  readonly reply: TakeReply;
  readonly at: number;

  constructor(reply: TakeReply, now: number) {
    this.reply = reply;
    this.at = now;
  }

  /** Whether some call got no token. */
  get short(): boolean {
    return this.reply.money.unmet + this.reply.read.unmet > 0;
  }

  /**
   * Estimates when a call gets its token if `ahead` tokens go to others first; -Infinity if every
   * call got one.
   */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const { money, read, intervalMs } = this.reply;
    if (money.unmet + (priority === "read" ? read.unmet : 0) === 0) return -Infinity;
    return Math.max(now, this.at + this.reply[priority].nextMs) + ahead * intervalMs;
  }

  status(now: number): Omit<RateLimitStatus, "remainingForReads"> {
    const { limit, remaining, fullMs } = this.reply;
    const fullInMs = Math.max(0, this.at + fullMs - now);
    return {
      limit,
      remaining: fullInMs === 0 ? limit : remaining,
      resetSeconds: Math.ceil(fullInMs / 1_000),
    };
  }
}

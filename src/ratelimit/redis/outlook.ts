import type { Priority, RateLimitStatus } from "../bucket.ts";
import type { Answer, Wants } from "./shared-budget.ts";

/** What Redis's last answer says of the time until the next one. Times are on the monotonic clock. */
export class Outlook {
  readonly #answer: Answer;
  readonly #at: number;
  /** The first of this replica's callers that got nothing, if anyone: money goes before reads. */
  readonly #short: Priority | undefined;

  constructor(answer: Answer, wanted: Wants, now: number) {
    this.#answer = answer;
    this.#at = now;
    if (answer.money < wanted.money) this.#short = "money";
    else if (answer.reads < wanted.reads) this.#short = "read";
  }

  get at(): number {
    return this.#at;
  }

  /** Whether somebody got less than was wanted. */
  get short(): boolean {
    return this.#short !== undefined;
  }

  /** Whether tokens are kept for this replica. */
  get placed(): boolean {
    return this.#answer.placed;
  }

  /** When the next caller of this priority, with `ahead` others of this replica before it, is served. */
  turnAt(priority: Priority, ahead: number, now: number): number {
    if (!this.#short || (this.#short === "read" && priority === "money")) return -Infinity;
    const {
      waitMs = 0,
      intervalMs,
      aheadMoney,
      othersMoney,
      aheadReads,
      othersReads,
    } = this.#answer;
    // The lines are served in turns: others get one each for each of ours, as long as they want some.
    let tokens = ahead;
    if (priority === "money") tokens += Math.min(ahead * othersMoney, aheadMoney);
    else {
      tokens += Math.min(ahead * othersReads, aheadReads);
      if (this.#short === "money") tokens += aheadMoney;
    }
    return Math.max(now, this.#at + waitMs) + tokens * intervalMs;
  }

  status(now: number): RateLimitStatus {
    const { limit, remaining, fullMs } = this.#answer;
    const fullInMs = Math.max(0, this.#at + fullMs - now);
    return {
      limit,
      remaining: fullInMs === 0 ? limit : remaining,
      resetSeconds: Math.ceil(fullInMs / 1_000),
    };
  }
}

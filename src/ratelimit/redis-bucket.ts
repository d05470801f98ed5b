import { errorOfAbort } from "../errors.ts";
import type { RedisClient } from "../redis/connect.ts";
import type { AccountKeys } from "../redis/keys.ts";
import type {
  Permit,
  Priority,
  RateLimitStatus,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "./bucket.ts";
import { Callers } from "./callers.ts";
import { systemClock } from "./clock.ts";
import { readRateLimitHeaders } from "./headers.ts";
import { LoneShare } from "./lone-share.ts";
import { closedError, deadlineError, exhaustedError } from "./refusals.ts";
import { type Answer, SharedBudget, type SharedToken } from "./shared-budget.ts";

/** Where the tokens come from: the budget of all replicas in Redis, or this replica's share. */
export type BudgetSource = "redis" | "local";

export interface RedisBucketOptions extends TokenBucketOptions {
  /** The caller's to close, after the bucket. */
  readonly client: RedisClient;
  readonly keys: Pick<AccountKeys, "bucket">;
  /** Unique among all processes that use the account at the same time. */
  readonly replicaId: string;
  /** Hears of each change of the source; `cause` is why Redis could not be used. */
  readonly onStateChange?: (source: BudgetSource, cause?: unknown) => void;
}

/**
 * The token bucket that all replicas share through Redis (contract, section 9).
 *
 * The callers of this process queue here. At most one question at a time goes to Redis, for all of
 * them, so that under load one round trip serves several. A replica that gets less than it asked
 * for has a place in line there and is told when to ask again. While Redis does not answer, the
 * bucket goes on with its share of the budget, and asks until Redis is back.
 */
export function createRedisBucket(options: RedisBucketOptions): TokenBucket {
  return new RedisBucket(options);
}

class RedisBucket implements TokenBucket {
  readonly #options: RedisBucketOptions;
  readonly #shared: SharedBudget;
  readonly #callers = new Callers(() => this.#onLeave());
  #lone: LoneShare | undefined;
  #closed = false;
  #asking = false;
  /** The next question is due; Infinity while one is under way and nothing new has come up. */
  #askAt = -Infinity;
  #answer: Answer | undefined;
  #answeredAt = -Infinity;
  /** Who among this replica's callers got nothing in the last answer, if anyone. */
  #short: Priority | undefined;
  /** The upstream refused: nothing is sent before. */
  #heldUntil = -Infinity;
  #patientUntil = -Infinity;
  #reviewedAt = -Infinity;
  #reviewDue = false;
  #soon = false;
  #timerAt = Infinity;
  #cancelTimer: (() => void) | undefined;

  constructor(options: RedisBucketOptions) {
    this.#options = options;
    this.#shared = new SharedBudget({
      ...options,
      key: options.keys.bucket,
      onLateAnswer: () => this.#askBy(-Infinity),
    });
    this.#begin();
  }

  async take({ priority, signal, deadlineMs }: TakeOptions): Promise<Permit> {
    if (this.#closed) throw closedError();
    if (signal.aborted) throw errorOfAbort(signal);
    const now = systemClock.now();
    const deadlineAt = now + (deadlineMs ?? Infinity) - systemClock.epoch();
    if (deadlineAt <= now) throw deadlineError();

    const { callers } = this;
    const ahead = callers.money + (priority === "read" ? callers.reads : 0);
    const patientUntil = now + this.#options.maxWaitMs;
    const at = this.#turnAt(priority, ahead, now);
    if (at > Math.min(patientUntil, deadlineAt)) throw exhaustedError(at - now);

    this.#patientUntil = patientUntil;
    const permit = callers.join({ priority, patientUntil, deadlineAt }, signal);
    if (priority === "money" && callers.reads > 0) this.#reviewDue = true;
    // Who comes behind others is asked for together with them.
    if (this.#lone) this.#wakeSoon();
    else if (priority === "money" || callers.size === 1) this.#askBy(now);
    return await permit;
  }

  status(): RateLimitStatus {
    const now = systemClock.now();
    if (this.#lone) return this.#lone.status(now);
    if (!this.#answer) {
      const { limit } = this.#shared;
      return { limit, remaining: limit, resetSeconds: 0 };
    }
    if (now > this.#answeredAt + STATUS_MS) this.#askBy(now);
    const { limit, remaining, fullMs } = this.#answer;
    const leftMs = Math.max(this.#answeredAt + fullMs, this.#heldUntil) - now;
    return {
      limit,
      remaining: this.#heldUntil > now ? 0 : leftMs <= 0 ? limit : remaining,
      resetSeconds: Math.max(0, Math.ceil(leftMs / 1_000)),
    };
  }
}

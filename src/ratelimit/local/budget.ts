import type { Priority, RateLimitStatus } from "../bucket.ts";
import type { RateLimitReading } from "../headers.ts";
import { TakeLog } from "./take-log.ts";

export interface BudgetOptions {
  /** Requests a second until the first answer. */
  readonly initialLimit: number;
  /** Share of the capacity, 0 to 1, that is only for calls that move money. */
  readonly reserve: number;
  /** Part of the upstream's limit that is ours. Default: 1, all of it. */
  readonly share?: number;
  /** Begin without tokens, as when others may just have spent them. Default: false. */
  readonly startEmpty?: boolean;
}

/** One token that was taken; the budget needs it back to judge the answer. */
export interface Taken {
  /** Order of the takes, from 1. */
  readonly order: number;
  readonly atMs: number;
  /** Tokens out right after this take, itself included. */
  readonly out: number;
  /** What had been taken off by answers by then, in all. */
  readonly lowered: number;
}

/**
 * The arithmetic of the token bucket for one process: no timers, no queue; every method is passed the
 * time, in milliseconds of one monotonic clock.
 *
 * A token comes back one window after it was taken, the window being a second and a margin. So the
 * bucket refills by `limit` a second and holds `limit` at most, and yet no second sees more than
 * `limit` requests. The spec (Limits part) calls the limit "per second", what is left "for the time
 * window", and Reset the time of "full regeneration": this is within budget whether the upstream
 * keeps a token bucket, a fixed window or a sliding one.
 */
export class Budget {
  readonly #reserve: number;
  readonly #share: number;
  readonly #log = new TakeLog();
  #limit: number;
  #takes = 0;
  #lowered = 0;
  /** The latest take whose answer was believed. */
  #newestAnswered = 0;
  /** Up to this take, a rejection has a cause that is known. */
  #explained = 0;
  #learnedMs = 0;
  #learnedAt = 0;
  #pacedAt = -Infinity;

  constructor(options: BudgetOptions, now: number) {
    this.#limit = options.initialLimit;
    this.#reserve = options.reserve;
    this.#share = options.share ?? 1;
    if (options.startEmpty) this.#lower(this.capacity, now);
  }

  /** Most tokens there can be; at least 1. */
  get capacity(): number {
    // The small term keeps 0.29 * 100 from being 28.
    return Math.max(1, Math.floor(this.#limit * this.#share + 1e-9));
  }

  /** Time after which a token taken comes back. */
  windowMs(now: number): number {
    const margin = budgetRules.jitterMs + this.#learned(now);
    return (1_000 + margin) * Math.max(1, 1 / (this.#limit * this.#share));
  }

  /** Time per token at the full rate. */
  intervalMs(now: number): number {
    return this.windowMs(now) / this.capacity;
  }

  /**
   * When the next token can be had after `ahead` others will have been taken at once; in the past if
   * it can be had now. It looks one window ahead at most: what `ahead` adds beyond is the queue's
   * to estimate, by `intervalMs`.
   */
  nextTokenAt(priority: Priority, ahead: number, now: number): number {
    const interval = this.intervalMs(now);
    const { capacity } = this;
    const at = this.#log.latest(capacity - ahead) + capacity * interval;
    if (priority === "money") return at;
    // Reads keep the same rate over a shorter window. After a burst that leaves the reserve alone
    // until the tokens begin to come back, and under a steady load it wastes nothing.
    const forReads = Math.max(1, Math.floor(capacity * (1 - this.#reserve) + 1e-9));
    return Math.max(at, this.#log.latest(forReads - ahead) + forReads * interval);
  }

  /**
   * When a call that waits, with `ahead` others before it, gets its token. Who waits is served no
   * faster than the limit, so that one burst does not become another.
   */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const firstAt = Math.max(this.#pacedAt, this.nextTokenAt(priority, 0, now));
    if (ahead === 0) return firstAt;
    return Math.max(
      Math.max(firstAt, now) + ahead * this.intervalMs(now),
      this.nextTokenAt(priority, ahead, now),
    );
  }

  /** The next token is for a call that waited. */
  pace(now: number): void {
    const lateMs = now - this.#pacedAt;
    this.#pacedAt = (lateMs > budgetRules.catchUpMs ? now : this.#pacedAt) + this.intervalMs(now);
  }

  take(now: number): Taken {
    this.#forget(now);
    this.#log.push(now);
    return { order: ++this.#takes, atMs: now, out: this.#log.size, lowered: this.#lowered };
  }

  /** The call was never sent: its token is there again. */
  giveBack(taken: Taken): void {
    this.#log.remove(taken.atMs);
  }

  /**
   * Folds an answer's headers in; one that is older than what was folded in before is ignored.
   * @returns true if tokens may now come later than they would have
   */
  observe(taken: Taken, answer: RateLimitReading, now: number): boolean {
    const [limit, lowered] = [this.#limit, this.#lowered];
    this.#fold(taken, answer, now);
    return this.#limit < limit || this.#lowered > lowered;
  }

  /** The upstream refused this take: if no cause is known, tokens stay out for longer from now on. */
  reject(taken: Taken, answer: RateLimitReading, now: number): void {
    this.#fold(taken, answer, now);
    if (taken.order > this.#explained) {
      const learned = Math.max(budgetRules.jitterMs, 2 * this.#learned(now));
      this.#learnedMs = Math.min(budgetRules.maxLearnedMs, learned);
      this.#learnedAt = now;
    }
    // Calls already on their way meet the same shortage, and teach nothing new.
    this.#explained = this.#takes;
  }

  status(now: number): RateLimitStatus {
    this.#forget(now);
    const fullAt = Math.max(this.#log.latest(1) + this.windowMs(now), now);
    return {
      limit: this.capacity,
      remaining: Math.max(0, this.capacity - this.#log.size),
      resetSeconds: Math.ceil((fullAt - now) / 1_000),
    };
  }

  #fold(taken: Taken, reading: RateLimitReading, now: number): void {
    const { limit, remaining } = reading;
    if (limit === undefined && remaining === undefined) return;
    if (taken.order < this.#newestAnswered) return;
    this.#newestAnswered = taken.order;
    if (limit !== undefined) this.#setLimit(limit, now);
    if (remaining === undefined) return;
    // Remaining was true when the upstream counted this call, so it is held against what was left
    // right after this take. What was taken since, or came back, is counted in the log already.
    const left = this.capacity - taken.out - (this.#lowered - taken.lowered);
    this.#lower(left - remaining, now);
  }

  #setLimit(limit: number, now: number): void {
    if (limit === this.#limit) return;
    this.#forget(now);
    const tokens = Math.max(0, this.capacity - this.#log.size);
    if (limit < this.#limit) this.#explained = this.#takes;
    this.#limit = limit;
    // More capacity is not more tokens: those come at the new rate.
    this.#lower(this.capacity - this.#log.size - tokens, now);
  }

  /** Takes tokens off that someone else has used, by our reckoning just now. */
  #lower(tokens: number, now: number): void {
    for (let left = tokens; left > 0; left--) {
      this.#log.push(now);
      this.#lowered++;
    }
  }

  #forget(now: number): void {
    this.#log.dropUntil(now - this.windowMs(now));
  }

  #learned(now: number): number {
    if (this.#learnedMs === 0) return 0;
    const halfLives = (now - this.#learnedAt) / budgetRules.learnedHalfLifeMs;
    return this.#learnedMs * 0.5 ** halfLives;
  }
}

/** What take-tokens.lua computes with as well: it gets them as an argument. */
export const budgetRules = {
  /**
   * How much faster a call may reach the upstream than one before it: two calls a window apart still
   * arrive a second apart. It costs 5% of the budget.
   */
  jitterMs: 50,
  /** What rejections without a known cause may add to the margin, doubling it each time. */
  maxLearnedMs: 3_000,
  /** Half of what a rejection taught is forgotten after this. */
  learnedHalfLifeMs: 30_000,
  /** Timers that are late by no more are made up for, or the rate would suffer from each. */
  catchUpMs: 50,
  /** Part of the limit that all replicas use together while each is without the others. */
  fallbackShare: 0.8,
  /** The shared budget counts takes in cells of this length. */
  cellMs: 5,
} as const;

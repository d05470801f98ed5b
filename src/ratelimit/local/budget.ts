import { Deque } from "../../collections/deque.ts";
import {
  type Priority,
  type RateLimitStatus,
  shareOf,
  type TokenBucketOptions,
} from "../bucket.ts";
import type { RateLimitReading } from "../headers.ts";

export interface BudgetOptions extends Pick<TokenBucketOptions, "initialLimit" | "reserve"> {
  /**
   * Share of the upstream's limit that this budget may use. It begins without tokens then, since
   * others may just have spent them. Default: all of it.
   */
  readonly share?: number;
}

/** Requests a second, whole tokens left, and when all of them are back. */
export interface BudgetStatus extends Pick<RateLimitStatus, "limit" | "remaining"> {
  readonly fullAt: number;
}

/** One token that was taken; the budget needs it again together with the answer. */
export interface Taken {
  /** Number of the take, from 1. */
  readonly order: number;
  /** Tokens out (taken, and not back yet) right after this take, itself included. */
  readonly out: number;
  /** Tokens that the budget had taken off by then, in all: see `#lower`. */
  readonly lowered: number;
}

/**
 * The arithmetic of the token bucket for one process: no timers, no queue. Every method takes the
 * time as an argument, in milliseconds of one monotonic clock.
 *
 * A token comes back one window after it was taken, the window being a second and a margin. So the
 * bucket refills by `limit` a second and holds at most `limit`, and yet no second sees more than
 * `limit` requests. The spec (Limits part) calls the limit "per second", what is left "for the time
 * window", and Reset the time of "full regeneration": this stays within budget whether the upstream
 * keeps a token bucket, a fixed window or a sliding one.
 */
export class Budget {
  readonly #reserve: number;
  readonly #share: number;
  /** The times of the tokens that are out, oldest first. */
  readonly #log = new Deque<number>();
  #limit: number;
  /** How many tokens were taken so far. */
  takes = 0;
  #lowered = 0;
  /** The latest take whose answer was used. */
  #newestAnswered = 0;
  /** A rejection of this take, or an earlier one, has a known cause. */
  #explained = 0;
  #learnedMs = 0;
  #learnedAt = 0;
  #pacedAt = -Infinity;

  constructor(options: BudgetOptions, now: number) {
    this.#limit = options.initialLimit;
    this.#reserve = options.reserve;
    this.#share = options.share ?? 1;
    if (options.share !== undefined) this.#lower(this.capacity, now);
  }

  /** The most tokens there can be; at least 1. */
  get capacity(): number {
    return shareOf(this.#limit, this.#share);
  }

  /** Time after which a taken token comes back. */
  windowMs(now: number): number {
    const margin = budgetRules.jitterMs + this.#learned(now);
    return (1_000 + margin) * Math.max(1, 1 / (this.#limit * this.#share));
  }

  /** Time per token at the full rate. */
  intervalMs(now: number): number {
    return this.windowMs(now) / this.capacity;
  }

  /**
   * When the next token is free after `ahead` others are taken now; in the past if it is free now.
   * Looks one window ahead at most: for more, `turnAt` estimates by `intervalMs`.
   */
  nextTokenAt(priority: Priority, ahead: number, now: number): number {
    const interval = this.intervalMs(now);
    const { capacity } = this;
    const at = this.#latest(capacity - ahead) + capacity * interval;
    if (priority === "money") return at;
    // Reads have the same rate over a shorter window. So a burst of reads leaves the reserve
    // untouched until tokens begin to come back, and under a steady load nothing is wasted.
    const forReads = shareOf(capacity, 1 - this.#reserve);
    return Math.max(at, this.#latest(forReads - ahead) + forReads * interval);
  }

  /**
   * When a waiting call with `ahead` others before it gets its token. Waiting calls are served no
   * faster than the limit, so that one burst does not become another.
   */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const firstAt = Math.max(now, this.#pacedAt, this.nextTokenAt(priority, 0, now));
    const pacedAt = firstAt + ahead * this.intervalMs(now);
    return Math.max(pacedAt, this.nextTokenAt(priority, ahead, now));
  }

  /** Notes that a waiting call takes the next token, to pace the ones after it. */
  pace(now: number): void {
    const lateMs = now - this.#pacedAt;
    this.#pacedAt = (lateMs > budgetRules.catchUpMs ? now : this.#pacedAt) + this.intervalMs(now);
  }

  take(now: number): Taken {
    const out = this.outAt(now) + 1;
    this.#log.push(now);
    return { order: ++this.takes, out, lowered: this.#lowered };
  }

  /**
   * Updates the budget from an answer's headers; ignores an answer to an older take than the last
   * one used.
   */
  observe(taken: Taken, { limit, remaining }: RateLimitReading, now: number): void {
    if (limit === undefined && remaining === undefined) return;
    if (taken.order < this.#newestAnswered) return;
    this.#newestAnswered = taken.order;
    if (limit !== undefined) this.#setLimit(limit, now);
    if (remaining === undefined) return;
    // Remaining was true when the upstream counted this call, so it is compared with what was left
    // right after this take. The log already counts what was taken, or came back, since then.
    const left = this.capacity - taken.out - (this.#lowered - taken.lowered);
    this.#lower(left - remaining, now);
  }

  /** The upstream refused this take: without a known cause, tokens stay out longer from now on. */
  reject(taken: Taken, now: number): void {
    if (taken.order > this.#explained) {
      const learned = Math.max(budgetRules.jitterMs, 2 * this.#learned(now));
      this.#learnedMs = Math.min(budgetRules.maxLearnedMs, learned);
      this.#learnedAt = now;
    }
    // Calls already in flight meet the same shortage: their rejections show nothing new.
    this.#explained = this.takes;
  }

  /** Tokens that are out. */
  outAt(now: number): number {
    const backUntil = now - this.windowMs(now);
    while ((this.#log.at(0) ?? Infinity) <= backUntil) this.#log.shift();
    return this.#log.length;
  }

  status(now: number): BudgetStatus {
    const remaining = Math.max(0, this.capacity - this.outAt(now));
    return { limit: this.capacity, remaining, fullAt: this.#latest(1) + this.windowMs(now) };
  }

  #setLimit(limit: number, now: number): void {
    if (limit === this.#limit) return;
    const tokens = Math.max(0, this.capacity - this.outAt(now));
    if (limit < this.#limit) this.#explained = this.takes;
    this.#limit = limit;
    // A higher limit brings no tokens at once: they come at the new rate.
    this.#lower(this.capacity - this.#log.length - tokens, now);
  }

  /** Takes off tokens that others have used, as if they were taken just now. */
  #lower(tokens: number, now: number): void {
    for (let left = tokens; left > 0; left--) {
      this.#log.push(now);
      this.#lowered++;
    }
  }

  /** When the nth latest token was taken, 1 being the last; -Infinity if there are fewer. */
  #latest(n: number): number {
    return this.#log.at(this.#log.length - n) ?? -Infinity;
  }

  #learned(now: number): number {
    if (this.#learnedMs === 0) return 0;
    const halfLives = (now - this.#learnedAt) / budgetRules.learnedHalfLifeMs;
    return this.#learnedMs * 0.5 ** halfLives;
  }
}

/** Constants that take-tokens.lua needs too: it gets them as an argument. */
export const budgetRules = {
  /**
   * How much faster a call may reach the upstream than an earlier one: two calls a window apart
   * still arrive a second apart. It costs 5% of the budget.
   */
  jitterMs: 50,
  /**
   * Most that rejections without a known cause add to the margin; each one doubles the addition.
   */
  maxLearnedMs: 3_000,
  /** Half-life of that addition. */
  learnedHalfLifeMs: 30_000,
  /** Timers that are late by up to this are made up for; otherwise each would lower the rate. */
  catchUpMs: 50,
  /** Share of the limit that all replicas together use while they do not reach Redis. */
  fallbackShare: 0.8,
} as const;

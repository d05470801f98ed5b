import { errorOfAbort } from "../../errors.ts";
import type { RedisClient } from "../../redis/connect.ts";
import { RedisTimeout } from "../../redis/deadline.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import { Alarm } from "../alarm.ts";
import type {
  Permit,
  Priority,
  RateLimitHeaders,
  RateLimitStatus,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "../bucket.ts";
import { systemClock } from "../clock.ts";
import { readRateLimitHeaders } from "../headers.ts";
import { closedError, deadlineError, exhaustedError } from "../refusals.ts";
import { Callers } from "./callers.ts";
import { LoneShare } from "./lone-share.ts";
import { Outlook } from "./outlook.ts";
import { lonePermit, type PermitHost, sharedPermit } from "./permits.ts";
import {
  type Answer,
  SharedBudget,
  type SharedToken,
  tokensOf,
  type Wants,
} from "./shared-budget.ts";

/** Where the tokens come from: the budget of all replicas in Redis, or this replica's share. */
export type BudgetSource = "redis" | "local";

export interface RedisBucketOptions extends TokenBucketOptions {
  /** The caller's to close, after the bucket. */
  readonly client: RedisClient;
  readonly keys: Pick<AccountKeys, "bucket">;
  /** Unique among all processes that use the account at the same time. */
  readonly replicaId: string;
  /** Hears of each change of the source; `reason` is why Redis can't be used, fit for logs. */
  readonly onStateChange?: (source: BudgetSource, reason?: string) => void;
}

/**
 * The token bucket that all replicas share through Redis (contract, section 9).
 *
 * The callers of this process queue here. One question at a time goes to Redis for all of them, so
 * that under load one round trip serves several. A replica that gets less than it asked for has a
 * place in line there, and is told when to ask again. While Redis does not answer, the bucket goes
 * on with its share of the budget and asks until Redis is back.
 */
export function createRedisBucket(options: RedisBucketOptions): TokenBucket {
  return new RedisBucket(options);
}

class RedisBucket implements TokenBucket {
  readonly #options: RedisBucketOptions;
  readonly #shared: SharedBudget;
  readonly #callers = new Callers(() => this.#wakeSoon());
  readonly #alarm = new Alarm(() => this.#wake());
  readonly #host: PermitHost = {
    askWithin: (ms) => this.#askBy(systemClock.now() + ms),
    hold: (answer) => this.#hold(answer),
    settled: (change) => {
      if (change === "later") this.#reviewDue = true;
      if (change === "freed" && this.#callers.size > 0) this.#askBy(systemClock.now());
      this.#wakeSoon();
    },
  };
  /** Set while Redis does not answer. */
  #lone: LoneShare | undefined;
  #outlook: Outlook | undefined;
  /** The upstream refused: nothing is sent before. */
  #heldUntil = -Infinity;
  /** End of the longest wait of the caller that came last. */
  #patientUntil = -Infinity;
  /** Since then no answer came in time to be used. */
  #slowSince: number | undefined;
  #asking = false;
  #askAt = Infinity;
  #reviewedAt = -Infinity;
  #reviewDue = false;
  #wakingSoon = false;
  #closed = false;

  constructor(options: RedisBucketOptions) {
    this.#options = options;
    const { bucket: key } = options.keys;
    const onLateAnswer = () => this.#askBy(systemClock.now());
    this.#shared = new SharedBudget({ ...options, key, onLateAnswer });
    this.#askBy(systemClock.now());
  }

  async take({ priority, signal, deadlineMs }: TakeOptions): Promise<Permit> {
    if (this.#closed) throw closedError();
    if (signal.aborted) throw errorOfAbort(signal);
    const now = systemClock.now();
    const deadlineAt = now + (deadlineMs ?? Infinity) - systemClock.epoch();
    if (deadlineAt <= now) throw deadlineError();

    const { money, reads } = this.#callers;
    const patientUntil = now + this.#options.maxWaitMs;
    const at = this.#turnAt(priority, priority === "money" ? money : money + reads, now);
    if (at > Math.min(patientUntil, deadlineAt)) throw exhaustedError(at - now);

    this.#patientUntil = patientUntil;
    const permit = this.#callers.join({ priority, patientUntil, deadlineAt }, signal);
    if (priority === "money" && reads > 0) this.#reviewDue = true;
    if (this.#lone) this.#wakeSoon();
    // A read that comes behind others is asked for together with them.
    else if (priority === "money" || money + reads === 0) this.#askBy(now);
    return await permit;
  }

  status(): RateLimitStatus {
    const now = systemClock.now();
    if (this.#lone) return this.#lone.status(now);
    if (!this.#outlook) {
      const { limit } = this.#shared;
      return { limit, remaining: limit, resetSeconds: 0 };
    }
    if (now > this.#outlook.at + STATUS_MS) this.#askBy(now);
    const status = this.#outlook.status(now);
    if (this.#heldUntil <= now) return status;
    const heldSeconds = Math.ceil((this.#heldUntil - now) / 1_000);
    return { ...status, remaining: 0, resetSeconds: Math.max(status.resetSeconds, heldSeconds) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#callers.failAll(closedError);
    this.#alarm.set(Infinity, 0);
    if (this.#lone || this.#options.client.status !== "ready") return;
    // Those who stay then count one replica less; they would find out anyway.
    const farewell = { money: 0, reads: 0, patienceMs: 0, returning: false, leaving: true };
    await this.#shared.ask(farewell).catch(() => {});
  }

  #askBy(at: number): void {
    if (at >= this.#askAt) return;
    this.#askAt = at;
    this.#wakeSoon();
  }

  /** Wakes once for all that happens in this turn: callers that come together are asked for together. */
  #wakeSoon(): void {
    if (this.#wakingSoon || this.#closed) return;
    this.#wakingSoon = true;
    queueMicrotask(() => {
      this.#wakingSoon = false;
      this.#wake();
    });
  }

  /** Does all that is due, and sets the alarm for the rest. */
  #wake(): void {
    if (this.#closed) return;
    const now = systemClock.now();
    if (this.#lone) this.#serveAlone(this.#lone, now);
    else this.#callers.next(now);
    if (this.#reviewDue && now >= this.#reviewedAt + REVIEW_EVERY_MS) this.#review(now);
    // A place in line that nobody needs any more is given up.
    if (this.#outlook?.placed && this.#callers.size === 0) this.#askAt = Math.min(this.#askAt, now);
    if (now >= this.#askAt && !this.#asking) void this.#ask(now);
    this.#schedule(now);
  }

  async #ask(now: number): Promise<void> {
    const returning = this.#lone !== undefined;
    if (returning && this.#shared.stalled) {
      this.#askAt = now + PROBE_MS;
      return;
    }
    const { money, reads } = returning ? NOBODY : this.#callers;
    const wanted = { money, reads };
    const patienceMs = Math.max(0, this.#patientUntil - now);
    this.#asking = true;
    this.#askAt = Infinity;
    const hear = await this.#shared.ask({ ...wanted, patienceMs, returning, leaving: false }).then(
      (answer) => () => this.#hearAfter(systemClock.now() - now, answer, wanted),
      (error: unknown) => () => this.#goAlone(error),
    );
    this.#asking = false;
    if (this.#closed) return;
    hear();
    this.#wake();
  }

  /** Tokens too long on their way are given back: used now, they would come back too soon. */
  #hearAfter(tookMs: number, answer: Answer, wanted: Wants): void {
    if (tookMs <= USABLE_MS) {
      this.#slowSince = undefined;
      this.#hear(answer, wanted);
      return;
    }
    for (const token of tokensOf(answer)) this.#shared.giveBack(token);
    const now = systemClock.now();
    this.#slowSince ??= now;
    if (this.#lone || now > this.#slowSince + SLOW_MS) this.#goAlone(new RedisTimeout(USABLE_MS));
    else this.#askAt = now;
  }

  #hear(answer: Answer, wanted: Wants): void {
    const now = systemClock.now();
    if (this.#lone) {
      this.#lone = undefined;
      this.#options.onStateChange?.("redis");
    }
    const outlook = new Outlook(answer, wanted, now);
    this.#outlook = outlook;
    this.#serve(tokensOf(answer), answer.money, now);
    if (outlook.short) this.#review(now);
    const asksOn = !outlook.short && this.#callers.size > 0;
    const pauseMs = asksOn ? 0 : Math.min(HEARTBEAT_MS, answer.againMs ?? HEARTBEAT_MS);
    this.#askAt = Math.min(this.#askAt, now + pauseMs);
  }

  /** Hands the granted tokens out; what nobody wants any more goes back. */
  #serve(tokens: readonly SharedToken[], money: number, now: number): void {
    for (const [nth, token] of tokens.entries()) {
      // What was granted for money may come from the reserve; the rest is for whoever is first.
      const caller = this.#callers.next(now, nth < money ? "money" : undefined);
      if (caller && this.#heldUntil <= now) {
        this.#shared.use(now);
        caller.grant(sharedPermit(token, this.#shared, this.#host));
      } else {
        this.#shared.giveBack(token);
        this.#askAt = now;
      }
    }
  }

  #serveAlone(lone: LoneShare, now: number): void {
    for (let first = this.#callers.next(now); first; first = this.#callers.next(now)) {
      if (this.#turnAt(first.priority, 0, now) > now) break;
      first.grant(lonePermit(lone, this.#shared, this.#host, now));
    }
  }

  /** The upstream refused: nobody here sends until its Reset, and the others are told at once. */
  #hold(answer: RateLimitHeaders): number {
    const now = systemClock.now();
    const { resetSeconds = 1 } = readRateLimitHeaders(answer);
    this.#heldUntil = Math.max(this.#heldUntil, now + resetSeconds * 1_000);
    this.#review(now);
    this.#askBy(now);
    return this.#heldUntil;
  }

  #goAlone(cause: unknown): void {
    const now = systemClock.now();
    if (!this.#lone) {
      const { limit, replicas } = this.#shared;
      this.#lone = new LoneShare(limit, replicas, this.#options.reserve, now);
      this.#outlook = undefined;
      this.#reviewDue = true;
      const reason = cause instanceof Error ? cause.message : String(cause);
      this.#options.onStateChange?.("local", reason);
    }
    this.#askAt = Math.min(this.#askAt, now + PROBE_MS);
  }

  /** When the caller with `ahead` others before it is served, as far as is known. */
  #turnAt(priority: Priority, ahead: number, now: number): number {
    const source = this.#lone ?? this.#outlook;
    return Math.max(this.#heldUntil, source?.turnAt(priority, ahead, now) ?? -Infinity);
  }

  #review(now: number): void {
    this.#reviewedAt = now;
    this.#reviewDue = false;
    this.#callers.review((priority, ahead) => this.#turnAt(priority, ahead, now), now);
  }

  /** Sets the alarm for the next question, the first caller, or a review that is due before. */
  #schedule(now: number): void {
    const { first } = this.#callers;
    let wakeAt = this.#asking ? Infinity : this.#askAt;
    if (first) wakeAt = Math.min(wakeAt, first.deadlineAt);
    if (first && this.#lone) wakeAt = Math.min(wakeAt, this.#turnAt(first.priority, 0, now));
    if (first && this.#reviewDue) wakeAt = Math.min(wakeAt, this.#reviewedAt + REVIEW_EVERY_MS);
    this.#alarm.set(wakeAt, now);
  }
}

const NOBODY: Wants = { money: 0, reads: 0 };

/**
 * A replica is heard at least this often. It must be less than a window (take-tokens.lua): then who
 * was silent for longer did not reach Redis.
 */
const HEARTBEAT_MS = 900;

/** A replica that is alone asks this often whether Redis is back. */
const PROBE_MS = 100;

/** The status is asked for again when it is older than this and somebody looks. */
const STATUS_MS = 250;

/**
 * A token that was longer on its way is not used. This is the margin by which the window exceeds a
 * second (take-tokens.lua), so that two uses of one token are a second apart all the same.
 */
const USABLE_MS = 50;

/** Redis that is too slow for longer than this is away; for less, this process may have been busy. */
const SLOW_MS = 500;

/** A review walks the whole line, so it is not for every call. */
const REVIEW_EVERY_MS = 20;

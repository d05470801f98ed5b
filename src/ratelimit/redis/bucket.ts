import type { RedisClient } from "../../redis/connect.ts";
import { RedisTimeout } from "../../redis/deadline.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import type {
  Permit,
  Priority,
  RateLimitHeaders,
  RateLimitStatus,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "../bucket.ts";
import { Alarm, type Clock, systemClock } from "../clock.ts";
import { readRateLimitHeaders } from "../headers.ts";
import { Budget, budgetRules } from "../local/budget.ts";
import { settledOnce } from "../permit.ts";
import type { CallerLine } from "../turns.ts";
import { type TurnAt, type Waiter, WaitQueue } from "../wait-queue.ts";
import { BudgetSnapshot } from "./budget-snapshot.ts";
import {
  type CallerTokens,
  SharedBudget,
  type SharedToken,
  type TakeReply,
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
  /** Default: the machine's clocks. */
  readonly clock?: Clock;
}

/**
 * The token bucket that all replicas share through Redis (contract, section 9).
 *
 * The calls of this process queue here. One request at a time goes to Redis for all of them, so
 * that under load one round trip serves several. A replica whose callers get less than they asked
 * for has places in line there, and is told when to ask again. While Redis does not answer, the
 * bucket goes on with its share of the budget and asks until Redis is back.
 */
export function createRedisBucket(options: RedisBucketOptions): TokenBucket {
  return new RedisBucket(options);
}

class RedisBucket implements TokenBucket {
  readonly #options: RedisBucketOptions;
  readonly #clock: Clock;
  readonly #shared: SharedBudget;
  readonly #queue: WaitQueue;
  readonly #alarm: Alarm;
  /** Set while Redis does not answer. */
  #fallback: Budget | undefined;
  #snapshot: BudgetSnapshot | undefined;
  /** The upstream refused: nothing is sent before. */
  #heldUntil = -Infinity;
  /** Since then no reply came in time to be used. */
  #slowSince: number | undefined;
  #asking = false;
  #askAt = Infinity;
  #wakingSoon = false;
  #closed = false;

  constructor(options: RedisBucketOptions) {
    const { clock = systemClock } = options;
    this.#options = options;
    this.#clock = clock;
    this.#queue = new WaitQueue({ ...options, clock, onLeave: () => this.#wakeSoon() });
    this.#alarm = new Alarm(clock, () => this.#wake());
    const { bucket: key } = options.keys;
    const onLateReply = () => this.#askBy(clock.now());
    this.#shared = new SharedBudget({ ...options, clock, key, onLateReply });
    this.#askBy(clock.now());
  }

  async take(options: TakeOptions): Promise<Permit> {
    const now = this.#clock.now();
    // A read behind others of its caller is asked for together with them.
    const asks = options.priority === "money" || this.#queue.isNew(options);
    const permit = this.#queue.join(options, this.#turnAt, now);
    if (this.#fallback) this.#wakeSoon();
    else if (asks) this.#askBy(now);
    return await permit;
  }

  status(): RateLimitStatus {
    const now = this.#clock.now();
    if (this.#fallback) return this.#fallback.status(now);
    if (!this.#snapshot) {
      const { limit } = this.#shared;
      return { limit, remaining: limit, resetSeconds: 0 };
    }
    if (now > this.#snapshot.at + statusMs) this.#askBy(now);
    const status = this.#snapshot.status(now);
    if (this.#heldUntil <= now) return status;
    const heldSeconds = Math.ceil((this.#heldUntil - now) / 1_000);
    return { ...status, remaining: 0, resetSeconds: Math.max(status.resetSeconds, heldSeconds) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.close();
    this.#alarm.set(Infinity, 0);
    if (this.#fallback || this.#options.client.status !== "ready") return;
    // Those who stay then count one replica less; they would find out anyway.
    const leave = { wants: nothing.tokens, maxWaitMs: 0, returning: false, leaving: true };
    await this.#shared.request(leave).catch(() => {});
  }

  #askBy(at: number): void {
    if (at >= this.#askAt) return;
    this.#askAt = at;
    this.#wakeSoon();
  }

  /** Wakes once for all that happens in this turn: calls that come together are asked for together. */
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
    const now = this.#clock.now();
    if (this.#fallback) this.#serveAlone(this.#fallback, now);
    this.#queue.reviewIfDue(this.#turnAt, now);
    const first = this.#queue.next(now);
    // A place in line that nobody needs any more is given up.
    if (this.#snapshot?.placed && !first) this.#askAt = Math.min(this.#askAt, now);
    if (now >= this.#askAt && !this.#asking) void this.#ask(now);
    let wakeAt = Math.min(this.#asking ? Infinity : this.#askAt, this.#queue.dueAt);
    if (first && this.#fallback) wakeAt = Math.min(wakeAt, this.#turnAt(first.priority, 0, now));
    this.#alarm.set(wakeAt, now);
  }

  async #ask(now: number): Promise<void> {
    const returning = this.#fallback !== undefined;
    if (returning && this.#shared.stalled) {
      this.#askAt = now + probeMs;
      return;
    }
    const wants = returning ? nothing : wantsOf(this.#queue);
    const maxWaitMs = Math.max(0, this.#queue.maxWaitUntil - now);
    this.#asking = true;
    this.#askAt = Infinity;
    const request = { wants: wants.tokens, maxWaitMs, returning, leaving: false };
    const hear = await this.#shared.request(request).then(
      (reply) => () => this.#hearAfter(this.#clock.now() - now, reply, grantsOf(reply, wants)),
      (error: unknown) => () => this.#goAlone(error),
    );
    this.#asking = false;
    if (this.#closed) return;
    hear();
    this.#wake();
  }

  /** Tokens too long on their way are given back: used now, they would come back too soon. */
  #hearAfter(tookMs: number, reply: TakeReply, grants: readonly Grant[]): void {
    if (tookMs <= usableMs) {
      this.#slowSince = undefined;
      this.#hear(reply, grants);
      return;
    }
    for (const { token } of grants) this.#shared.giveBack(token);
    const now = this.#clock.now();
    this.#slowSince ??= now;
    if (this.#fallback || now > this.#slowSince + slowMs) this.#goAlone(new RedisTimeout(usableMs));
    else this.#askAt = now;
  }

  #hear(reply: TakeReply, grants: readonly Grant[]): void {
    const now = this.#clock.now();
    if (this.#fallback) {
      this.#fallback = undefined;
      this.#options.onStateChange?.("redis");
    }
    const snapshot = new BudgetSnapshot(reply, now);
    this.#snapshot = snapshot;
    for (const grant of grants) this.#serve(grant, now);
    this.#queue.turns.money.setElsewhere(reply.money.others);
    this.#queue.turns.read.setElsewhere(reply.read.others);
    if (snapshot.short) this.#queue.review(this.#turnAt, now);
    const asksOn = !snapshot.short && this.#queue.size > 0;
    const pauseMs = asksOn ? 0 : Math.min(heartbeatMs, reply.againMs ?? heartbeatMs);
    this.#askAt = Math.min(this.#askAt, now + pauseMs);
  }

  /** Hands a granted token out; what nobody wants any more goes back. */
  #serve({ token, line, priority }: Grant, now: number): void {
    // What was granted for money may come from the reserve; money goes before reads all the same.
    const next =
      priority === "money"
        ? this.#queue.next(now, "money", line)
        : this.#queue.next(now, undefined, this.#queue.turns.money.first ? undefined : line);
    if (next && this.#heldUntil <= now) {
      this.#shared.use(now);
      next.grant(this.#sharedPermit(token));
    } else {
      this.#shared.giveBack(token);
      this.#askAt = now;
    }
  }

  #serveAlone(fallback: Budget, now: number): void {
    for (let first = this.#queue.next(now); first; first = this.#queue.next(now)) {
      if (this.#turnAt(first.priority, 0, now) > now) break;
      first.grant(this.#fallbackPermit(fallback, now));
    }
  }

  /** A permit for a token that Redis granted: what it is told goes to Redis. */
  #sharedPermit(token: SharedToken): Permit {
    const shared = this.#shared;
    return settledOnce({
      observe: (answer) => {
        const reading = readRateLimitHeaders(answer);
        const { limit } = shared;
        shared.observe(token, reading);
        // A new limit is told at once, a shortage soon, and the rest when there is something to ask.
        const { limit: told = limit, remaining = limit } = reading;
        if (told !== limit) this.#askBy(this.#clock.now());
        else if (remaining < limit - token.out) this.#askBy(this.#clock.now() + flushMs);
      },
      rejected: (answer) => {
        const until = this.#hold(answer);
        shared.observe(token, readRateLimitHeaders(answer));
        shared.reject(until, token);
      },
      release: () => {
        shared.giveBack(token);
        this.#freed(flushMs);
      },
    });
  }

  /** Takes from the replica's own share; Redis hears of the limit and of rejections when it is back. */
  #fallbackPermit(fallback: Budget, now: number): Permit {
    const shared = this.#shared;
    const taken = fallback.takePaced(now);
    shared.useUncounted(now);
    return settledOnce({
      observe: (answer) => {
        if (fallback.observe(taken, answer, this.#clock.now())) this.#queue.reviewSoon();
        const { limit } = readRateLimitHeaders(answer);
        if (limit !== undefined) shared.tellLimit(limit, now);
        this.#wakeSoon();
      },
      rejected: (answer) => {
        const until = this.#hold(answer);
        fallback.reject(taken, answer, this.#clock.now());
        shared.reject(until);
      },
      release: () => {
        fallback.giveBack(taken);
        this.#freed(Infinity);
      },
    });
  }

  /** A token is free: who waits gets it now, and Redis hears of it soon. */
  #freed(withinMs: number): void {
    this.#askBy(this.#clock.now() + (this.#queue.size > 0 ? 0 : withinMs));
    this.#wakeSoon();
  }

  /** The upstream refused: nobody here sends until its Reset, and the others are told at once. */
  #hold(answer: RateLimitHeaders): number {
    const now = this.#clock.now();
    const { resetSeconds = 1 } = readRateLimitHeaders(answer);
    this.#heldUntil = Math.max(this.#heldUntil, now + resetSeconds * 1_000);
    this.#queue.review(this.#turnAt, now);
    this.#askBy(now);
    return this.#heldUntil;
  }

  #goAlone(cause: unknown): void {
    const now = this.#clock.now();
    if (!this.#fallback) {
      const { limit, replicas } = this.#shared;
      const share = budgetRules.fallbackShare / Math.max(1, replicas);
      const { reserve } = this.#options;
      // Without tokens at first: the others may just have spent them.
      this.#fallback = new Budget({ initialLimit: limit, reserve, share, startEmpty: true }, now);
      this.#snapshot = undefined;
      this.#queue.turns.money.setElsewhere({});
      this.#queue.turns.read.setElsewhere({});
      this.#queue.reviewSoon();
      const reason = cause instanceof Error ? cause.message : String(cause);
      this.#options.onStateChange?.("local", reason);
    }
    this.#askAt = Math.min(this.#askAt, now + probeMs);
  }

  readonly #turnAt: TurnAt = (priority, ahead, now) => {
    const source = this.#fallback ?? this.#snapshot;
    return Math.max(this.#heldUntil, source?.turnAt(priority, ahead, now) ?? -Infinity);
  };
}

/** What is asked for, and for whom. */
interface Wants {
  readonly tokens: Readonly<Record<Priority, CallerTokens>>;
  readonly lines: Readonly<Record<Priority, readonly CallerLine<Waiter>[]>>;
}

const nothing: Wants = { tokens: { money: {}, read: {} }, lines: { money: [], read: [] } };

function wantsOf({ turns: { money, read } }: WaitQueue): Wants {
  const lines = { money: money.lines.slice(0, maxCallers), read: read.lines.slice(0, maxCallers) };
  const tokensOf = (callers: readonly CallerLine<Waiter>[]) =>
    Object.fromEntries(callers.map(({ key, calls }) => [key, calls.size]));
  return { tokens: { money: tokensOf(lines.money), read: tokensOf(lines.read) }, lines };
}

/** A token that Redis granted, and whose turn it is. */
interface Grant {
  readonly token: SharedToken;
  readonly priority: Priority;
  readonly line: CallerLine<Waiter>;
}

function grantsOf(reply: TakeReply, { lines }: Wants): Grant[] {
  const { id, at, lowered } = reply;
  let [order, out] = [reply.order, reply.out];
  const grants: Grant[] = [];
  for (const priority of ["money", "read"] as const) {
    for (const line of lines[priority]) {
      for (let count = reply[priority].granted[line.key] ?? 0; count > 0; count--) {
        const token = { id, at, lowered, order: ++order, out: ++out };
        grants.push({ token, priority, line });
      }
    }
  }
  return grants;
}

/** More callers than these are asked for when the first have had their turns. */
const maxCallers = 64;

/**
 * A replica is heard at least this often. It must be less than a window: then who was silent for
 * longer did not reach Redis.
 */
const heartbeatMs = 900;

/** A replica that is alone asks this often whether Redis is back. */
const probeMs = 100;

/** The status is asked for again when it is older than this and somebody looks. */
const statusMs = 250;

/** Longest that a report waits for a request to go along with. */
const flushMs = 50;

/**
 * A token that was longer on its way is not used: this is the margin by which the window exceeds a
 * second, so that two uses of one token are a second apart all the same.
 */
const usableMs = budgetRules.jitterMs;

/** Redis that is too slow for longer than this is away; for less, this process may have been busy. */
const slowMs = 500;

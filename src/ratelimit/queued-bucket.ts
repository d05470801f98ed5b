import { GatewayError } from "../errors.ts";
import { inWords } from "../redis/ask.ts";
import { noReport, type Report } from "../report.ts";
import {
  type Permit,
  type Priority,
  type RateLimitHeaders,
  type RateLimitStatus,
  shareOf,
  type TakeOptions,
  type TokenBucketOptions,
} from "./bucket.ts";
import { Alarm, type Clock, systemClock } from "./clock.ts";
import { type RateLimitReading, readRateLimitHeaders } from "./headers.ts";
import { Budget, budgetRules } from "./local/budget.ts";
import {
  type CallerTokens,
  grantsOf,
  SharedBudget,
  type SharedBudgetOptions,
  type TakeReply,
  type Wants,
} from "./redis/shared-budget.ts";
import type { Turns } from "./turns.ts";
import { type Waiter, WaitQueue } from "./wait-queue.ts";

export interface LocalBucketOptions extends TokenBucketOptions {
  /** The account's name in what is reported. */
  readonly account?: string;
  /** Hears of waits, refusals and rejections. Default: nothing is reported. */
  readonly report?: Report;
  /** Default: the machine's clocks. */
  readonly clock?: Clock;
}

export interface RedisBucketOptions
  extends LocalBucketOptions,
    Pick<SharedBudgetOptions, "client" | "keys" | "replicaId"> {}

/** What users of a bucket call. */
export type TokenBucket = Pick<QueuedBucket, "take" | "status" | "source" | "waiting" | "close">;

/**
 * The request budget of one merchant account: a token bucket that mirrors the upstream's own (spec,
 * Limits part). It is in this process's memory, for one process alone, or with RedisBucketOptions the
 * one that all replicas share through Redis. Closing it does not close the client.
 *
 * - capacity and refill per second follow X-RateLimit-Limit, and no second has more calls than
 *   that: a token comes back a second, and a margin for jitter, after it was taken;
 * - X-RateLimit-Remaining can lower the tokens, never raise them; a header that is missing, stale,
 *   negative or not a number changes nothing;
 * - after a rejection nothing is taken until X-RateLimit-Reset has passed;
 * - a share of the capacity, the reserve, is only for calls that move money;
 * - calls queue, money first, never past their deadline or the longest wait; within money and
 *   within reads callers take turns of one token, and all customers together take one turn beside
 *   each service.
 *
 * Calls queue in this process. One request at a time goes to Redis for all of them, so that under
 * load one round trip serves several. If callers get less than they asked for, Redis keeps places in
 * line for the replica, and the reply says when to ask again. While Redis does not answer, the
 * replica uses its share of the limit from its own budget and keeps asking until Redis is back. A
 * process without Redis does the same with the whole limit, and does not ask.
 *
 * Whatever happens sets off one wake-up (`#wake`), which serves the calls that can be served, asks
 * Redis if that is due, and sets the alarm for the next thing to do.
 */
export class QueuedBucket {
  readonly #options: Required<LocalBucketOptions>;
  readonly #queue: WaitQueue;
  readonly #alarm: Alarm;
  readonly #shared: SharedBudget | undefined;
  /** Where tokens come from now. */
  #source: Budget | SharedBudget;
  /** Tokens that were taken from the own budget while Redis was told how many are out. */
  #untold = 0;
  /** After a rejection: nothing is sent before this time. */
  #heldUntil = -Infinity;

  constructor(given: LocalBucketOptions | RedisBucketOptions) {
    const options = { account: "", report: noReport, clock: systemClock, ...given };
    this.#options = options;
    this.#alarm = new Alarm(options.clock, () => this.#wake());
    const soon = () => this.#alarm.soon();
    const onJoin = (now: number) => {
      if (!this.#own) this.#shared?.askBy(now);
      soon();
    };
    this.#queue = new WaitQueue({ ...options, turnAt: this.#turnAt, onJoin });
    if ("client" in options) {
      this.#shared = new SharedBudget(options);
      this.#source = this.#shared;
      soon();
    } else {
      this.#source = new Budget(options, options.clock.now());
    }
  }

  /** The budget in this process's memory, while Redis is not used. */
  get #own(): Budget | undefined {
    return this.#source instanceof Budget ? this.#source : undefined;
  }

  /**
   * Takes one token, waiting for it if need be.
   * @throws GatewayError RESOURCE_EXHAUSTED with `retryAfterMs`, at once if no token will be free
   * within the longest wait or before the caller's deadline, else after that wait; DEADLINE_EXCEEDED
   * when that deadline has passed; the error of `errorOfAbort` if the signal aborts; UNAVAILABLE once
   * closed.
   */
  async take(options: TakeOptions): Promise<Permit> {
    const { priority, caller } = options;
    const { account, report } = this.#options;
    const asked = { account, priority, caller };
    const startedMs = performance.now();
    let refused: string | undefined;
    try {
      return await this.#take(options);
    } catch (error) {
      refused = error instanceof GatewayError ? error.code : "INTERNAL";
      throw error;
    } finally {
      report("tokenGiven", { ...asked, waitedMs: performance.now() - startedMs, refused });
    }
  }

  #take(options: TakeOptions): Permit | Promise<Permit> {
    const now = this.#options.clock.now();
    const deadlineAt = this.#queue.check(options, now);
    const { priority } = options;
    const own = this.#own;
    if (own && this.#heldUntil <= now && this.#queue.isFree(priority)) {
      if (own.nextTokenAt(priority, 0, now) <= now) return this.#permit(own, own.take(now), now);
    }
    return this.#queue.join(options, deadlineAt, now);
  }

  /** How many calls wait for a token. */
  get waiting(): Readonly<Record<Priority, number>> {
    const { money, read } = this.#queue.turns;
    return { money: money.size, read: read.size };
  }

  /** The last known state, without waiting. */
  status(): RateLimitStatus {
    const now = this.#options.clock.now();
    const { limit, remaining: free, fullAt } = this.#source.status(now);
    const remaining = this.#heldUntil > now ? 0 : free;
    const reserved = limit - shareOf(limit, 1 - this.#options.reserve);
    const remainingForReads = Math.max(0, remaining - reserved);
    const resetSeconds = Math.ceil(Math.max(0, fullAt - now, this.#heldUntil - now) / 1_000);
    return { limit, remaining, remainingForReads, resetSeconds };
  }

  /**
   * Where the tokens come from: the budget that all replicas share, this replica's share while Redis
   * cannot be used, or a budget of its own without Redis.
   */
  get source(): "own" | "shared" | "share" {
    if (!this.#shared) return "own";
    return this.#own ? "share" : "shared";
  }

  /** Fails all waiting calls with UNAVAILABLE, and stops the timer. */
  close(): void {
    this.#queue.close();
    this.#alarm.set(Infinity, 0);
  }

  /** Does all that is due, and sets the alarm for the rest. */
  #wake(): void {
    if (this.#queue.closed) return;
    const now = this.#options.clock.now();
    const own = this.#own;
    const shared = this.#shared;
    const serveAt = own ? this.#serveFrom(own, now) : Infinity;
    if (shared && now >= shared.dueAt) void this.#ask(shared);
    this.#alarm.set(Math.min(shared?.dueAt ?? Infinity, serveAt), now);
  }

  async #ask(shared: SharedBudget): Promise<void> {
    const own = this.#own;
    const wants = own ? { money: {}, read: {} } : wantsOf(this.#queue, shared.replicas);
    const now = this.#options.clock.now();
    const takes = own?.takes ?? 0;
    const out = own ? Math.min(own.outAt(now), takes) : this.#untold || undefined;
    const heldMs = this.#heldUntil - now;
    const reply = await shared.ask({ wants, out, heldMs }).catch((error: unknown) => {
      if (!this.#queue.closed) this.#goAlone(shared, error);
    });
    this.#untold = own ? own.takes - takes : 0;
    if (reply && !this.#queue.closed) this.#receive(shared, reply, wants);
    this.#alarm.soon();
  }

  #receive(shared: SharedBudget, reply: TakeReply, wants: Wants): void {
    const now = this.#options.clock.now();
    if (this.#own) this.#use(shared, { source: "shared" });
    for (const { token, priority, caller } of grantsOf(reply, wants)) {
      const next = this.#queue.next(now, priority, caller);
      if (next && this.#heldUntil <= now) next.grant(this.#permit(shared, token, now));
    }
    if (reply.money.unmet + reply.read.unmet === 0 && this.#queue.size > 0) shared.askBy(now);
  }

  /** @returns when the next waiting call can be served */
  #serveFrom(own: Budget, now: number): number {
    for (let first = this.#queue.next(now); first; first = this.#queue.next(now)) {
      const at = this.#turnAt(first.priority, 0, now);
      if (at > now) return at;
      own.pace(now);
      first.grant(this.#permit(own, own.take(now), now));
    }
    return Infinity;
  }

  /**
   * Only the first call of any of the permit's methods counts; it also wakes the queue. Of the answer
   * to a token of this process's own budget Redis hears the limit and the rejection.
   */
  #permit<Token>(from: TokenSource<Token>, token: Token, takenAt: number): Permit {
    const uncounted = from instanceof Budget ? this.#shared : undefined;
    let settled = false;
    const settle = (answer: RateLimitHeaders, isRejected: boolean) => {
      if (settled) return;
      settled = true;
      const { clock, report, account } = this.#options;
      const now = clock.now();
      const reading = readRateLimitHeaders(answer);
      from.observe(token, reading, now);
      uncounted?.observeLimit(reading.limit, takenAt);
      if (isRejected) {
        report("tokenRejected", { account });
        this.#heldUntil = Math.max(this.#heldUntil, now + (reading.resetSeconds ?? 1) * 1_000);
        from.reject(token, now);
        uncounted?.askBy(now);
      }
      this.#alarm.soon();
    };
    return {
      observe: (answer) => settle(answer, false),
      rejected: (answer) => settle(answer, true),
    };
  }

  #goAlone(shared: SharedBudget, cause: unknown): void {
    if (this.#own) return;
    const { limit, replicas } = shared;
    const share = budgetRules.fallbackShare / replicas;
    const { reserve } = this.#options;
    const own = new Budget({ initialLimit: limit, reserve, share }, this.#options.clock.now());
    const reason = cause instanceof Error ? inWords(cause) : String(cause);
    this.#use(own, { source: "share", reason });
  }

  #use(from: Budget | SharedBudget, told: { source: "shared" | "share"; reason?: string }): void {
    this.#source = from;
    this.#options.report("budgetSource", { account: this.#options.account, ...told });
  }

  readonly #turnAt = (priority: Priority, ahead: number, now: number): number => {
    const from = Math.max(this.#heldUntil, now);
    return Math.max(from, this.#source.turnAt(priority, ahead, from));
  };
}

/** The budget that a token is from, which hears how the token's call ended. */
interface TokenSource<Token> {
  observe(token: Token, reading: RateLimitReading, now: number): void;
  reject(token: Token, now: number): void;
}

/** How many tokens the waiting callers want, in the order of their turns. */
function wantsOf({ turns: { money, read } }: WaitQueue, replicas: number): Wants {
  const most = Math.ceil(maxCallers / replicas);
  const tokensOf = ({ callers }: Turns<Waiter>): CallerTokens =>
    Object.fromEntries(callers.slice(0, most).map(([key, { size }]) => [key, size]));
  return { money: tokensOf(money), read: tokensOf(read) };
}

/**
 * Most callers of all replicas together that are in a line in Redis, since each request passes over
 * all of them; others follow when these have had their turns.
 */
const maxCallers = 256;

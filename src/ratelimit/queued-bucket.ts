import { inWords } from "../redis/ask.ts";
import { RedisTimeout } from "../redis/deadline.ts";
import type { AccountKeys } from "../redis/keys.ts";
import {
  capacityForReads,
  type Permit,
  type Priority,
  type RateLimitStatus,
  type TakeOptions,
  type TokenBucket,
  type TokenBucketOptions,
} from "./bucket.ts";
import { Alarm, type Clock, systemClock } from "./clock.ts";
import { type RateLimitReading, readRateLimitHeaders } from "./headers.ts";
import { Budget, budgetRules } from "./local/budget.ts";
import { BudgetSnapshot } from "./redis/budget-snapshot.ts";
import {
  type CallerTokens,
  SharedBudget,
  type SharedBudgetKey,
  type SharedToken,
  type TakeReply,
} from "./redis/shared-budget.ts";
import type { CallerLine } from "./turns.ts";
import { type TurnAt, type Waiter, WaitQueue } from "./wait-queue.ts";

/** Where the tokens come from: the budget of all replicas in Redis, or one in this process. */
export type BudgetSource = "redis" | "local";

export interface QueuedBucketOptions extends TokenBucketOptions {
  /** The budget that all replicas share. Default: this process has the whole limit for itself. */
  readonly shared?: SharedBudgetKey;
  /** Called at each change of the source; `reason` is why Redis can't be used, fit for logs. */
  readonly onStateChange?: (source: BudgetSource, reason?: string) => void;
  /** Default: the machine's clocks. */
  readonly clock?: Clock;
}

export type LocalBucketOptions = Omit<QueuedBucketOptions, "shared" | "onStateChange">;

/** A token bucket in this process's memory, for one process alone. */
export function createLocalBucket(options: LocalBucketOptions): TokenBucket {
  return new QueuedBucket(options);
}

export interface RedisBucketOptions
  extends Omit<QueuedBucketOptions, "shared">,
    Pick<SharedBudgetKey, "client" | "replicaId"> {
  readonly keys: Pick<AccountKeys, "bucket">;
}

/** The token bucket that all replicas share through Redis. Closing it does not close the client. */
export function createRedisBucket(options: RedisBucketOptions): TokenBucket {
  const { client, keys, replicaId } = options;
  return new QueuedBucket({ ...options, shared: { client, key: keys.bucket, replicaId } });
}

/**
 * Calls queue in this process; tokens come from Redis or from a budget in this process's memory.
 *
 * One request at a time goes to Redis for all waiting calls, so that under load one round trip
 * serves several. If callers get less than they asked for, Redis keeps places in line for the
 * replica, and the reply says when to ask again. While Redis does not answer, the replica uses its
 * share of the limit from its own budget and keeps asking until Redis is back. A process without
 * Redis does the same with the whole limit, and does not ask.
 */
class QueuedBucket implements TokenBucket {
  readonly #options: QueuedBucketOptions;
  readonly #clock: Clock;
  readonly #queue: WaitQueue;
  readonly #alarm: Alarm;
  readonly #shared: SharedBudget | undefined;
  /** The budget in this process's memory; set while Redis is not used. */
  #own: Budget | undefined;
  #snapshot: BudgetSnapshot | undefined;
  /** After a rejection: nothing is sent before this time. */
  #heldUntil = -Infinity;
  /** Since this time every reply has come too late to be used. */
  #slowSince: number | undefined;
  #asking = false;
  #askAt = Infinity;
  #wakingSoon = false;
  #closed = false;

  constructor(options: QueuedBucketOptions) {
    const { clock = systemClock, shared } = options;
    this.#options = options;
    this.#clock = clock;
    this.#queue = new WaitQueue({ ...options, clock, onLeave: () => this.#wakeSoon() });
    this.#alarm = new Alarm(clock, () => this.#wake());
    if (shared) {
      const onLateReply = () => this.#askBy(clock.now());
      this.#shared = new SharedBudget({ ...options, ...shared, clock, onLateReply });
      this.#askBy(clock.now());
    } else {
      this.#own = new Budget(options, clock.now());
    }
  }

  async take(options: TakeOptions): Promise<Permit> {
    const now = this.#clock.now();
    this.#queue.check(options, now);
    const { priority } = options;
    if (this.#own && this.#heldUntil <= now && this.#queue.isFree(priority)) {
      if (this.#own.nextTokenAt(priority, 0, now) <= now) return this.#ownPermit(this.#own, now);
    }
    // A read behind others of its caller needs no request of its own: the next one includes it.
    const asks = priority === "money" || this.#queue.isNew(options);
    const permit = this.#queue.join(options, this.#turnAt, now);
    if (this.#own) this.#wakeSoon();
    else if (asks) this.#askBy(now);
    return await permit;
  }

  status(): RateLimitStatus {
    const now = this.#clock.now();
    if (!this.#own && this.#snapshot && now > this.#snapshot.at + statusMs) this.#askBy(now);
    const status = (this.#own ?? this.#snapshot)?.status(now) ?? this.#initialStatus;
    const { limit, remaining, resetSeconds } = status;
    if (this.#heldUntil > now) {
      const heldSeconds = Math.ceil((this.#heldUntil - now) / 1_000);
      const reset = Math.max(resetSeconds, heldSeconds);
      return { limit, remaining: 0, remainingForReads: 0, resetSeconds: reset };
    }
    const reserved = limit - capacityForReads(limit, this.#options.reserve);
    return { ...status, remainingForReads: Math.max(0, remaining - reserved) };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#queue.close();
    this.#alarm.set(Infinity, 0);
    if (this.#own || this.#options.shared?.client.status !== "ready") return;
    // The other replicas then count one less at once; they would notice later anyway.
    const leave = { wants: nothing.tokens, maxWaitMs: 0, returning: false, leaving: true };
    await this.#shared?.request(leave).catch(() => {});
  }

  get #initialStatus(): Omit<RateLimitStatus, "remainingForReads"> {
    const limit = this.#shared?.limit ?? this.#options.initialLimit;
    return { limit, remaining: limit, resetSeconds: 0 };
  }

  /** Asks Redis at this time at the latest, if this bucket shares a budget at all. */
  #askBy(at: number): void {
    if (!this.#shared || at >= this.#askAt) return;
    this.#askAt = at;
    this.#wakeSoon();
  }

  /**
   * Wakes once for all that happens in this turn, so that calls which arrive together share a
   * request.
   */
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
    if (this.#own) this.#serveFrom(this.#own, now);
    this.#queue.reviewIfDue(this.#turnAt, now);
    const first = this.#queue.next(now);
    // No call waits any more: ask now, which gives up this replica's place in line.
    if (this.#snapshot?.placed && !first) this.#askAt = Math.min(this.#askAt, now);
    if (this.#shared && now >= this.#askAt && !this.#asking) void this.#ask(this.#shared, now);
    let wakeAt = Math.min(this.#asking ? Infinity : this.#askAt, this.#queue.dueAt);
    if (first && this.#own) wakeAt = Math.min(wakeAt, this.#turnAt(first.priority, 0, now));
    this.#alarm.set(wakeAt, now);
  }

  async #ask(shared: SharedBudget, now: number): Promise<void> {
    const returning = this.#own !== undefined;
    if (returning && shared.stalled) {
      this.#askAt = now + probeMs;
      return;
    }
    const wants = returning ? nothing : wantsOf(this.#queue);
    const maxWaitMs = Math.max(0, this.#queue.maxWaitUntil - now);
    this.#asking = true;
    this.#askAt = Infinity;
    const request = { wants: wants.tokens, maxWaitMs, returning, leaving: false };
    const proceed = await shared.request(request).then(
      (reply) => () =>
        this.#receive(shared, reply, grantsOf(reply, wants), this.#clock.now() - now),
      (error: unknown) => () => this.#goAlone(shared, error),
    );
    this.#asking = false;
    if (this.#closed) return;
    proceed();
    this.#wake();
  }

  #receive(shared: SharedBudget, reply: TakeReply, grants: readonly Grant[], tookMs: number): void {
    const now = this.#clock.now();
    if (tookMs > usableMs) {
      // Redis would count these tokens as back less than a second after so late a use.
      for (const { token } of grants) shared.giveBack(token);
      this.#slowSince ??= now;
      const away = this.#own || now > this.#slowSince + slowMs;
      if (away) this.#goAlone(shared, new RedisTimeout(usableMs));
      else this.#askAt = now;
      return;
    }
    this.#slowSince = undefined;
    if (this.#own) {
      this.#own = undefined;
      this.#options.onStateChange?.("redis");
    }
    const snapshot = new BudgetSnapshot(reply, now);
    this.#snapshot = snapshot;
    for (const grant of grants) this.#serve(shared, grant, now);
    this.#queue.turns.money.setElsewhere(reply.money.others);
    this.#queue.turns.read.setElsewhere(reply.read.others);
    if (snapshot.short) this.#queue.review(this.#turnAt, now);
    const asksOn = !snapshot.short && this.#queue.size > 0;
    const pauseMs = asksOn ? 0 : Math.min(heartbeatMs, reply.againMs ?? heartbeatMs);
    this.#askAt = Math.min(this.#askAt, now + pauseMs);
  }

  /** Gives a granted token to a waiting call, or back to Redis if no call can use it. */
  #serve(shared: SharedBudget, { token, line, priority }: Grant, now: number): void {
    // A token for money may come from the reserve, so no read gets it. A token for reads goes to
    // money first.
    const next =
      priority === "money"
        ? this.#queue.next(now, "money", line)
        : this.#queue.next(now, undefined, this.#queue.turns.money.first ? undefined : line);
    if (next && this.#heldUntil <= now) {
      shared.use(now);
      next.grant(this.#sharedPermit(shared, token));
    } else {
      shared.giveBack(token);
      this.#askAt = now;
    }
  }

  #serveFrom(own: Budget, now: number): void {
    for (let first = this.#queue.next(now); first; first = this.#queue.next(now)) {
      if (this.#turnAt(first.priority, 0, now) > now) break;
      own.pace(now);
      first.grant(this.#ownPermit(own, now));
    }
  }

  /** A permit for a token that Redis granted; the upstream's answer is reported to Redis. */
  #sharedPermit(shared: SharedBudget, token: SharedToken): Permit {
    return this.#permit({
      observe: (reading) => {
        const known = shared.limit;
        shared.observe(token, reading);
        // A new limit is reported at once, a shortage soon, and the rest with the next request.
        const { limit = known, remaining = known } = reading;
        if (limit !== known) this.#askBy(this.#clock.now());
        else if (remaining < known - token.out) this.#askBy(this.#clock.now() + flushMs);
      },
      rejected: (reading, until) => {
        shared.observe(token, reading);
        shared.reject(until, token);
      },
      release: () => {
        shared.giveBack(token);
        this.#askBy(this.#clock.now() + (this.#queue.size > 0 ? 0 : flushMs));
      },
    });
  }

  /** A permit for a token of this process's budget; Redis gets use, limit and rejection later. */
  #ownPermit(own: Budget, now: number): Permit {
    const taken = own.take(now);
    this.#shared?.useUncounted(now);
    return this.#permit({
      observe: (reading) => {
        if (own.observe(taken, reading, this.#clock.now())) this.#queue.reviewSoon();
        if (reading.limit !== undefined) this.#shared?.observeLimit(reading.limit, now);
      },
      rejected: (reading, until) => {
        own.reject(taken, reading, this.#clock.now());
        this.#shared?.reject(until);
      },
      release: () => own.giveBack(taken),
    });
  }

  /** Only the first call of any of the permit's methods counts; it also wakes the queue. */
  #permit({ observe, rejected, release }: PermitActions): Permit {
    let settled = false;
    const once = (settle: () => void) => {
      if (settled) return;
      settled = true;
      settle();
      this.#wakeSoon();
    };
    return {
      observe: (answer) => once(() => observe(readRateLimitHeaders(answer))),
      rejected: (answer) =>
        once(() => {
          const now = this.#clock.now();
          const reading = readRateLimitHeaders(answer);
          const { resetSeconds = 1 } = reading;
          this.#heldUntil = Math.max(this.#heldUntil, now + resetSeconds * 1_000);
          rejected(reading, this.#heldUntil);
          this.#queue.review(this.#turnAt, now);
          // Report it now, so that the other replicas stop at once.
          this.#askBy(now);
        }),
      release: () => once(release),
    };
  }

  #goAlone(shared: SharedBudget, cause: unknown): void {
    const now = this.#clock.now();
    if (!this.#own) {
      const { limit, replicas } = shared;
      const share = budgetRules.fallbackShare / Math.max(1, replicas);
      const { reserve } = this.#options;
      // Start without tokens: the other replicas may just have spent them.
      this.#own = new Budget({ initialLimit: limit, reserve, share, startEmpty: true }, now);
      this.#snapshot = undefined;
      this.#queue.turns.money.setElsewhere({});
      this.#queue.turns.read.setElsewhere({});
      this.#queue.reviewSoon();
      const reason = cause instanceof Error ? inWords(cause) : String(cause);
      this.#options.onStateChange?.("local", reason);
    }
    this.#askAt = Math.min(this.#askAt, now + probeMs);
  }

  readonly #turnAt: TurnAt = (priority, ahead, now) => {
    const from = Math.max(this.#heldUntil, now);
    const source = this.#own ?? this.#snapshot;
    return Math.max(from, source?.turnAt(priority, ahead, from) ?? from);
  };
}

/** What happens to a token, by how its call ended. */
interface PermitActions {
  observe(reading: RateLimitReading): void;
  rejected(reading: RateLimitReading, until: number): void;
  release(): void;
}

/** The tokens that a request asks for, and the callers that wait for them. */
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

/** A token that Redis granted, and the caller whose turn it is. */
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

/** Most callers per priority in one request; others follow when these have had their turns. */
const maxCallers = 64;

/**
 * A replica asks at least this often, in milliseconds. Less than a window, so that a replica that
 * was silent for a whole window did not reach Redis.
 */
const heartbeatMs = 900;

/** How often a replica that uses its own budget asks whether Redis is back, in milliseconds. */
const probeMs = 100;

/** Reading a status that is older than this asks Redis for a new one, in milliseconds. */
const statusMs = 250;

/** Longest that a report waits for the next request, in milliseconds. */
const flushMs = 50;

/**
 * A token is not used if its reply took longer. The window exceeds a second by this margin, so two
 * uses of one token are still a second apart.
 */
const usableMs = budgetRules.jitterMs;

/**
 * Redis counts as away when its replies are too late for longer than this, in milliseconds; for
 * less, this process may have been busy.
 */
const slowMs = 500;

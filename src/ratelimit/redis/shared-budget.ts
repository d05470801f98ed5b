import { StoreTimeout } from "../../errors.ts";
import type { RedisClient } from "../../redis/connect.ts";
import type { AccountKeys } from "../../redis/keys.ts";
import { readyWithin } from "../../redis/ready-within.ts";
import { loadScript } from "../../redis/script.ts";
import type { Priority, TokenBucketOptions } from "../bucket.ts";
import type { Clock } from "../clock.ts";
import type { RateLimitReading } from "../headers.ts";
import { type BudgetStatus, budgetRules, type Taken } from "../local/budget.ts";

export interface SharedBudgetOptions extends Pick<TokenBucketOptions, "initialLimit" | "reserve"> {
  /** Where the budget is stored. */
  readonly client: RedisClient;
  readonly keys: Pick<AccountKeys, "bucket">;
  /** Unique among all processes that use the account at the same time. */
  readonly replicaId: string;
  readonly clock: Clock;
}

/** How many tokens each caller wants, or gets. */
export type CallerTokens = Readonly<Record<string, number>>;

export type Wants = Readonly<Record<Priority, CallerTokens>>;

/** What the replica asks for; see take-tokens.lua. */
export interface TakeRequest {
  readonly wants: Wants;
  /** Tokens of its own budget that are out; undefined if it did not use that. */
  readonly out: number | undefined;
  /** For so long nothing may be sent, after a rejection; 0 or less if something may. */
  readonly heldMs: number;
}

/** What the script replies; see take-tokens.lua. */
export interface TakeReply extends Taken, Readonly<Record<Priority, LineReply>> {
  readonly id: string;
  readonly counted: number;
  readonly againMs?: number;
  readonly intervalMs: number;
  readonly limit: number;
  readonly remaining: number;
  readonly fullMs: number;
  readonly replicas: number;
}

interface LineReply {
  readonly granted: CallerTokens;
  readonly unmet: number;
  readonly nextMs: number;
  readonly perOwn: number;
}

/** A token that Redis granted, as the script's reply describes it. */
export type SharedToken = Taken & Pick<TakeReply, "id">;

/** The tokens of a reply with the callers whose turn it is, in the order in which these were named. */
export function grantsOf(reply: TakeReply, wants: Wants) {
  const { id, lowered } = reply;
  let [order, out] = [reply.order, reply.out];
  const grants: { token: SharedToken; priority: Priority; caller: string }[] = [];
  for (const priority of ["money", "read"] as const) {
    for (const caller of Object.keys(wants[priority])) {
      for (let count = reply[priority].granted[caller] ?? 0; count > 0; count--) {
        const token = { id, lowered, order: ++order, out: ++out };
        grants.push({ token, priority, caller });
      }
    }
  }
  return grants;
}

/** The headers of the newest answer, and the take that it belongs to if Redis knows that take. */
type NewestAnswer = Partial<Taken> & RateLimitReading;

/**
 * This replica's access to the budget in Redis: each request sends reports and asks for tokens.
 * Reports are repeated if a request fails. This class says when the next request is due; its owner
 * sends it, one at a time.
 */
export class SharedBudget {
  readonly #options: SharedBudgetOptions;
  #newest: NewestAnswer | undefined;
  /** The newest take of this state that was rejected. */
  #rejected = 0;
  /** The last reply, to estimate by until the next one. */
  #last: { readonly reply: TakeReply; readonly at: number } | undefined;
  #askAt = -Infinity;
  #isAsking = false;
  /** Since this time every reply has come too late to be used. */
  #slowSince: number | undefined;

  constructor(options: SharedBudgetOptions) {
    this.#options = options;
  }

  /** Requests a second, as last heard. */
  get limit(): number {
    return this.#newest?.limit ?? this.#last?.reply.limit ?? this.#options.initialLimit;
  }

  /** How many replicas there are, this one included, by the last reply. */
  get replicas(): number {
    return this.#last?.reply.replicas ?? 1;
  }

  get #stateId(): string {
    return this.#last?.reply.id ?? "";
  }

  /** When the next request is due; never while one is under way. */
  get dueAt(): number {
    return this.#isAsking ? Infinity : this.#askAt;
  }

  /** Asks at this time at the latest. */
  askBy(at: number): void {
    this.#askAt = Math.min(at, this.#askAt);
  }

  /** Estimates when a call gets its token if `ahead` tokens go to others of this replica first. */
  turnAt(priority: Priority, ahead: number, now: number): number {
    const { reply, at } = this.#last ?? { at: now };
    if (reply && reply.money.unmet + (priority === "read" ? reply.read.unmet : 0) > 0) {
      const { nextMs, perOwn } = reply[priority];
      return Math.max(now, at + nextMs) + ahead * perOwn * reply.intervalMs;
    }
    const { limit, remaining } = this.status(at);
    return at + ((ahead + 1 - remaining) * 1_000) / limit;
  }

  status(now: number): BudgetStatus {
    const { initialLimit } = this.#options;
    if (!this.#last) return { limit: initialLimit, remaining: initialLimit, fullAt: now };
    const { limit, remaining, fullMs } = this.#last.reply;
    const fullAt = this.#last.at + fullMs;
    return { limit, remaining: now >= fullAt ? limit : remaining, fullAt };
  }

  /**
   * Records an answer's headers. The next request reports those of the newest take only; it is due at
   * once for a new limit.
   */
  observe({ id, order, out, lowered }: SharedToken, reading: RateLimitReading, now: number): void {
    if ((reading.limit ?? this.limit) !== this.limit) this.askBy(now);
    const { limit = this.#newest?.limit, remaining } = reading;
    const isNews = limit !== undefined || remaining !== undefined;
    if (isNews && id === this.#stateId && order >= (this.#newest?.order ?? 0)) {
      this.#newest = { order, out, lowered, limit, remaining };
    }
  }

  /** Records a rejection by the upstream. It is reported now, so that all replicas stop at once. */
  reject(token: SharedToken, now: number): void {
    this.askBy(now);
    if (token.id === this.#stateId) this.#rejected = Math.max(token.order, this.#rejected);
  }

  /** Records the limit in the answer to a call that was sent without Redis, at `sentAt`. */
  observeLimit(limit: number | undefined, sentAt: number): void {
    // Redis has replied since then, and may know a newer limit.
    if (limit !== undefined && sentAt >= (this.#last?.at ?? 0)) this.#newest = { limit };
  }

  /**
   * Sends the reports and asks for tokens, in one round trip.
   * @returns undefined if the reply came too late to use its tokens
   * @throws StoreTimeout, or whatever Redis or its connection failed with: Redis counts as away
   */
  async ask(request: TakeRequest): Promise<TakeReply | undefined> {
    const { clock } = this.#options;
    const askedAt = clock.now();
    this.#isAsking = true;
    this.#askAt = Infinity;
    try {
      const reply = await this.#request(request);
      const now = clock.now();
      if (now - askedAt <= usableMs) {
        this.#slowSince = undefined;
        this.askBy(now + Math.min(heartbeatMs, reply.againMs ?? heartbeatMs));
        return reply;
      }
      // Redis would count its tokens as back less than a second after so late a use.
      this.#slowSince ??= now;
      if (request.out !== undefined || now > this.#slowSince + slowMs)
        throw new StoreTimeout(usableMs);
      this.askBy(now);
      return undefined;
    } catch (error) {
      this.askBy(clock.now() + probeMs);
      throw error;
    } finally {
      this.#isAsking = false;
    }
  }

  async #request({ wants, out, heldMs }: TakeRequest): Promise<TakeReply> {
    const { client, keys, replicaId, reserve, clock } = this.#options;
    const newest = this.#newest;
    const text = JSON.stringify({
      wants,
      out,
      replica: replicaId,
      state: this.#stateId,
      counted: this.#last?.reply.counted ?? 0,
      limit: this.limit,
      reserve,
      answer: newest,
      // A rejection is reported until it has passed, since Redis may forget it.
      ...(heldMs > 0 && { rejected: { order: this.#rejected, ms: Math.ceil(heldMs) + 1 } }),
    });
    const run = async () => {
      // A connection that is being opened, or broke, is no outage yet.
      if (client.status !== "ready") await readyWithin(timeoutMs, client);
      return await script.run(client, [keys.bucket], [text, rules]);
    };
    const reply = JSON.parse(String(await this.#within(timeoutMs, run()))) as TakeReply;
    if (this.#newest === newest) this.#newest = undefined;
    if (reply.id !== this.#stateId) {
      // Another state numbers takes anew: what was to be reported of the old ones has no meaning.
      if (this.#newest?.order !== undefined) this.#newest = undefined;
      this.#rejected = 0;
    }
    this.#last = { reply, at: clock.now() };
    return reply;
  }

  #within<T>(ms: number, reply: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const late = () => reject(new StoreTimeout(ms));
      // First read a reply that arrived while this process was busy.
      const stop = this.#options.clock.after(ms, () => setImmediate(late));
      reply.finally(stop).then(resolve, reject);
    });
  }
}

const script = loadScript(new URL("./take-tokens.lua", import.meta.url));
const rules = JSON.stringify(budgetRules);

/** Longest wait for one reply, in milliseconds. */
const timeoutMs = 250;

/**
 * A replica asks at least this often, in milliseconds. Less than a window, so that a replica that
 * was silent for a whole window did not reach Redis.
 */
const heartbeatMs = 900;

/**
 * How often a replica that uses its own budget asks whether Redis is back, in milliseconds: not so
 * often that requests pile up at a server that stalls.
 */
const probeMs = 500;

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

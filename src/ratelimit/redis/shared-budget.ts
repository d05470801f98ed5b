import { Cluster } from "ioredis";
import type { RedisClient } from "../../redis/connect.ts";
import { RedisTimeout } from "../../redis/deadline.ts";
import { readyWithin } from "../../redis/ready.ts";
import { loadScript } from "../../redis/script.ts";
import type { Priority } from "../bucket.ts";
import type { Clock } from "../clock.ts";
import type { RateLimitReading } from "../headers.ts";
import { budgetRules } from "../local/budget.ts";
import { TakeLog } from "../local/take-log.ts";

/** Where the shared budget is kept, and who this replica is. */
export interface SharedBudgetKey {
  readonly client: RedisClient;
  readonly key: string;
  /** Unique among all processes that use the account at the same time. */
  readonly replicaId: string;
}

export interface SharedBudgetOptions extends SharedBudgetKey {
  readonly initialLimit: number;
  readonly reserve: number;
  readonly clock: Clock;
  /** A request that was given up has come to its end after all. */
  readonly onLateReply: () => void;
}

/** How many tokens each caller wants, or gets. */
export type CallerTokens = Readonly<Record<string, number>>;

/** What the replica asks for; see take-tokens.lua. */
export interface TakeRequest {
  readonly wants: Readonly<Record<Priority, CallerTokens>>;
  readonly maxWaitMs: number;
  readonly returning: boolean;
  readonly leaving: boolean;
}

/** What the script replies; see take-tokens.lua. */
export interface TakeReply extends Readonly<Record<Priority, LineReply>> {
  readonly id: string;
  readonly at: number;
  readonly order: number;
  readonly out: number;
  readonly lowered: number;
  readonly placed: boolean;
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
  readonly others: Readonly<Record<string, readonly [number, number]>>;
}

/** A token that Redis granted: what the script's reply says of it. */
export type SharedToken = Pick<TakeReply, "id" | "at" | "order" | "out" | "lowered">;

/** What the newest answer said, and the take that it belongs to if Redis knows of that. */
type NewestAnswer = Partial<Pick<TakeReply, "order" | "out" | "lowered">> & RateLimitReading;

/**
 * This replica's end of the budget in Redis: brings reports along and asks for tokens. Reports are
 * repeated until Redis has replied, except of unused tokens: those come back once at most.
 */
export class SharedBudget {
  readonly #options: SharedBudgetOptions;
  /** Granted and used; reported again when Redis may have forgotten them. */
  readonly #used = new TakeLog();
  /** Used without Redis. */
  readonly #uncounted = new TakeLog();
  readonly #unused = new Map<number, number>();
  #newest: NewestAnswer | undefined;
  #rejected: { readonly order: number; readonly until: number } | undefined;
  #stateId = "";
  #limit: number;
  #replicas = 1;
  /** Requests that neither were replied to nor failed, in time or late. */
  #open = 0;
  #askedAt = -Infinity;
  #repliedAt = -Infinity;
  /** The connection over which the last reply came; undefined of a cluster. */
  #repliedOver: unknown;
  #doubtful = false;

  constructor(options: SharedBudgetOptions) {
    this.#options = options;
    this.#limit = options.initialLimit;
  }

  /** Requests a second, by the last reply. */
  get limit(): number {
    return this.#limit;
  }

  /** How many replicas there are, this one included, by the last reply. */
  get replicas(): number {
    return this.#replicas;
  }

  /** A request is still on its way: to ask more of a server that stands still only piles them up. */
  get stalled(): boolean {
    return this.#open > 0 && this.#options.clock.now() - this.#askedAt < stalledMs;
  }

  /** A granted token is being used. */
  use(now: number): void {
    this.#used.dropUntil(now - longestWindowMs);
    this.#used.push(now);
  }

  /** A token was used that Redis knows nothing of. */
  useUncounted(now: number): void {
    this.#uncounted.push(now);
  }

  /** A granted token will not be used, or was not. */
  giveBack({ id, at }: SharedToken): void {
    if (id === this.#stateId) this.#unused.set(at, (this.#unused.get(at) ?? 0) + 1);
  }

  /** An answer's headers. Of several before the next request the newest take's are what counts. */
  observe({ id, order, out, lowered }: SharedToken, reading: RateLimitReading): void {
    const { limit = this.#newest?.limit, remaining } = reading;
    if (id !== this.#stateId || (limit === undefined && remaining === undefined)) return;
    if (order < (this.#newest?.order ?? 0)) return;
    this.#newest = { order, out, lowered, limit, remaining };
  }

  /** The upstream refused; without a token if Redis knows nothing of that take. */
  reject(until: number, token?: SharedToken): void {
    const order = token?.id === this.#stateId ? token.order : 0;
    this.#rejected = {
      order: Math.max(order, this.#rejected?.order ?? 0),
      until: Math.max(until, this.#rejected?.until ?? 0),
    };
  }

  /** An answer to a call that was sent without Redis, at `sentAt`, had this limit. */
  observeLimit(limit: number, sentAt: number): void {
    // Redis may have a newer one since it is back.
    if (sentAt < this.#repliedAt) return;
    this.#limit = limit;
    this.#newest = { limit };
  }

  /**
   * One round trip.
   * @throws RedisTimeout, or whatever Redis or its connection failed with.
   */
  async request(request: TakeRequest): Promise<TakeReply> {
    const { client, key, replicaId, reserve, clock } = this.#options;
    const now = clock.now();
    // Reported as long as it holds: Redis may forget it meanwhile.
    if (this.#rejected && this.#rejected.until <= now) this.#rejected = undefined;
    const first = this.#stateId === "";
    let connection = connectionOf(client);
    // Behind another connection may be a server that was promoted, and lacks the newest takes.
    if (!first && connection !== this.#repliedOver) this.#doubtful = true;
    const [newest, rejected, doubtful] = [this.#newest, this.#rejected, this.#doubtful];
    this.#uncounted.dropUntil(now - longestWindowMs);
    const uncounted = this.#uncounted.size;
    const spent = doubtful ? [this.#used, this.#uncounted] : [this.#uncounted];
    const text = JSON.stringify({
      ...request,
      replica: replicaId,
      state: this.#stateId,
      recent: this.#used.latest(1) > now - longestLossMs,
      limit: this.#limit,
      reserve,
      spent: spent.flatMap((log) => log.ago(now, budgetRules.cellMs)),
      unused: [...this.#unused],
      answer: newest,
      rejected: rejected && {
        order: rejected.order,
        ms: Math.max(0, Math.ceil(rejected.until - now)) + 1,
      },
    });
    this.#unused.clear();
    this.#askedAt = now;
    const run = async () => {
      if (first) await readyWithin(firstTimeoutMs, client);
      connection = connectionOf(client);
      return await script.run(client, [key], [text, rules]);
    };
    const timeoutMs = first ? firstTimeoutMs : requestTimeoutMs;
    const reply = JSON.parse(String(await this.#within(timeoutMs, run()))) as TakeReply;
    this.#uncounted.dropFirst(uncounted);
    if (this.#newest === newest) this.#newest = undefined;
    if (doubtful) this.#doubtful = false;
    if (reply.id !== this.#stateId) this.#enter(reply.id);
    this.#limit = this.#newest?.limit ?? reply.limit;
    this.#replicas = reply.replicas;
    this.#repliedAt = clock.now();
    this.#repliedOver = connection;
    return reply;
  }

  /** Another state, whose takes begin anew: reports about the old one mean nothing to it. */
  #enter(stateId: string): void {
    this.#stateId = stateId;
    this.#unused.clear();
    if (this.#newest?.order !== undefined) this.#newest = undefined;
    if (this.#rejected) this.#rejected = { ...this.#rejected, order: 0 };
  }

  /** Gives a reply up after `ms`, and follows it to its end, which may come long after. */
  #within<T>(ms: number, reply: Promise<T>): Promise<T> {
    const { clock, onLateReply } = this.#options;
    const askedAt = clock.now();
    this.#open++;
    return new Promise((resolve, reject) => {
      // A reply that came while this process was busy is read before the timer's verdict counts.
      const stop = clock.after(ms, () => setImmediate(() => reject(new RedisTimeout(ms))));
      const ended = (failed: boolean) => {
        stop();
        this.#open--;
        // A connection that broke, or a server that lost its memory: what was reported may be gone.
        if (failed) this.#doubtful = true;
        if (clock.now() - askedAt > requestTimeoutMs) onLateReply();
      };
      reply.then(
        (value) => {
          ended(false);
          resolve(value);
        },
        (error: unknown) => {
          ended(true);
          reject(error);
        },
      );
    });
  }
}

/** Undefined of a cluster, which has many. */
function connectionOf(client: RedisClient): unknown {
  return client instanceof Cluster ? undefined : client.stream;
}

const script = loadScript(new URL("./take-tokens.lua", import.meta.url));
const rules = JSON.stringify(budgetRules);

/** Longest wait for one reply. */
const requestTimeoutMs = 250;

/** The first reply may take longer: a process that starts is busy, and may not be connected yet. */
const firstTimeoutMs = 1_000;

/** After this a request that was given up no longer keeps others back. */
const stalledMs = 1_000;

/** A token taken is out for no longer. */
const longestWindowMs = 1_000 + budgetRules.jitterMs + budgetRules.maxLearnedMs;

/** For this long after its last take a replica minds that the state it was counted in is gone. */
const longestLossMs = 2_000;

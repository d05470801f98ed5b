import type { RedisClient } from "../../redis/connect.ts";
import { RedisTimeout } from "../../redis/deadline.ts";
import { isCluster } from "../../redis/link.ts";
import { readyWithin } from "../../redis/ready.ts";
import { loadScript } from "../../redis/script.ts";
import type { Priority } from "../bucket.ts";
import type { Clock } from "../clock.ts";
import type { RateLimitReading } from "../headers.ts";
import { budgetRules } from "../local/budget.ts";
import { TakeLog } from "../local/take-log.ts";

/** Where the shared budget is stored, and the id of this replica. */
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
  /** Called when a request ends later than `requestTimeoutMs`, most often after it was given up. */
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

/** A token that Redis granted, as the script's reply describes it. */
export type SharedToken = Pick<TakeReply, "id" | "at" | "order" | "out" | "lowered">;

/** The headers of the newest answer, and the take that it belongs to if Redis knows that take. */
type NewestAnswer = Partial<Pick<TakeReply, "order" | "out" | "lowered">> & RateLimitReading;

/**
 * This replica's access to the budget in Redis: each request sends reports and asks for tokens.
 * Reports are repeated until Redis has replied, except those of unused tokens, which are sent at
 * most once.
 */
export class SharedBudget {
  readonly #options: SharedBudgetOptions;
  /** Tokens granted and used; reported again when Redis may have forgotten them. */
  readonly #used = new TakeLog();
  /** Tokens used without Redis. */
  readonly #uncounted = new TakeLog();
  readonly #unused = new Map<number, number>();
  #newest: NewestAnswer | undefined;
  #rejected: { readonly order: number; readonly until: number } | undefined;
  #stateId = "";
  #limit: number;
  #replicas = 1;
  /** Requests that have neither a reply nor an error yet, including those given up. */
  #open = 0;
  #askedAt = -Infinity;
  #repliedAt = -Infinity;
  /** The connection of the last reply; undefined for a cluster. */
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

  /** A recent request has no reply yet: further ones would only pile up at a server that stalls. */
  get stalled(): boolean {
    return this.#open > 0 && this.#options.clock.now() - this.#askedAt < stalledMs;
  }

  /** Records that a granted token is used now. */
  use(now: number): void {
    this.#used.dropUntil(now - longestWindowMs);
    this.#used.push(now);
  }

  /** Records the use of a token that Redis did not grant. */
  useUncounted(now: number): void {
    this.#uncounted.push(now);
  }

  /** Gives back a granted token that was not used. */
  giveBack({ id, at }: SharedToken): void {
    if (id === this.#stateId) this.#unused.set(at, (this.#unused.get(at) ?? 0) + 1);
  }

  /** Records an answer's headers. The next request reports those of the newest take only. */
  observe({ id, order, out, lowered }: SharedToken, reading: RateLimitReading): void {
    const { limit = this.#newest?.limit, remaining } = reading;
    if (id !== this.#stateId || (limit === undefined && remaining === undefined)) return;
    if (order < (this.#newest?.order ?? 0)) return;
    this.#newest = { order, out, lowered, limit, remaining };
  }

  /** Records a rejection by the upstream; without a token if Redis does not know that take. */
  reject(until: number, token?: SharedToken): void {
    const order = token?.id === this.#stateId ? token.order : 0;
    this.#rejected = {
      order: Math.max(order, this.#rejected?.order ?? 0),
      until: Math.max(until, this.#rejected?.until ?? 0),
    };
  }

  /** Records the limit in the answer to a call that was sent without Redis, at `sentAt`. */
  observeLimit(limit: number, sentAt: number): void {
    // Redis has replied since then, and may know a newer limit.
    if (sentAt < this.#repliedAt) return;
    this.#limit = limit;
    this.#newest = { limit };
  }

  /**
   * Sends the reports and asks for tokens, in one round trip.
   * @throws RedisTimeout, or whatever Redis or its connection failed with.
   */
  async request(request: TakeRequest): Promise<TakeReply> {
    const { client, key, replicaId, reserve, clock } = this.#options;
    const now = clock.now();
    // A rejection is reported until it has passed, since Redis may forget it.
    if (this.#rejected && this.#rejected.until <= now) this.#rejected = undefined;
    const first = this.#stateId === "";
    let connection = connectionOf(client);
    // Another connection may lead to a newly promoted server that lacks the newest takes.
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

  /** Switches to another state, which numbers takes anew: drops reports about the old takes. */
  #enter(stateId: string): void {
    this.#stateId = stateId;
    this.#unused.clear();
    if (this.#newest?.order !== undefined) this.#newest = undefined;
    if (this.#rejected) this.#rejected = { ...this.#rejected, order: 0 };
  }

  /** Rejects after `ms`, but follows the request until it ends, which may be long after. */
  #within<T>(ms: number, reply: Promise<T>): Promise<T> {
    const { clock, onLateReply } = this.#options;
    const askedAt = clock.now();
    this.#open++;
    return new Promise((resolve, reject) => {
      // First read a reply that arrived while this process was busy.
      const stop = clock.after(ms, () => setImmediate(() => reject(new RedisTimeout(ms))));
      const ended = (failed: boolean) => {
        stop();
        this.#open--;
        // The connection broke, or the server lost its data: reports may be lost.
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

/** Undefined for a cluster, which has many. */
function connectionOf(client: RedisClient): unknown {
  return isCluster(client) ? undefined : client.stream;
}

const script = loadScript(new URL("./take-tokens.lua", import.meta.url));
const rules = JSON.stringify(budgetRules);

/** Longest wait for one reply, in milliseconds. */
const requestTimeoutMs = 250;

/** The same for the first reply: a process that starts is busy, and may not be connected yet. */
const firstTimeoutMs = 1_000;

/** An open request holds further ones back for no longer than this, in milliseconds. */
const stalledMs = 1_000;

/** Longest that a taken token stays out, in milliseconds. */
const longestWindowMs = 1_000 + budgetRules.jitterMs + budgetRules.maxLearnedMs;

/** A replica ignores the loss of the state in Redis if its own last take is older than this. */
const longestLossMs = 2_000;

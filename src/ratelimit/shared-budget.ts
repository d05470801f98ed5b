import type { RedisClient } from "../redis/connect.ts";
import { within } from "../redis/deadline.ts";
import type { AccountKeys } from "../redis/keys.ts";
import { loadScript } from "../redis/script.ts";
import type { RateLimitReading } from "./headers.ts";
import { RecentTakes, type TakesAgo } from "./recent-takes.ts";

const script = loadScript(new URL("./take-tokens.lua", import.meta.url));

export interface SharedBudgetOptions {
  readonly client: RedisClient;
  readonly keys: AccountKeys;
  /** Unique among all processes that ever use the account. */
  readonly replicaId: string;
  readonly initialLimit: number;
  readonly reserve: number;
  /** A call that had been given up was settled after all: Redis answers again, or is known to be gone. */
  onLateAnswer(): void;
}

/** A token that Redis granted. */
export interface SharedToken {
  readonly stateId: string;
  readonly at: number;
  readonly order: number;
  readonly out: number;
  readonly lowered: number;
}

export interface Ask {
  readonly money: number;
  readonly reads: number;
  /** Longest that these callers wait, in milliseconds. */
  readonly patienceMs: number;
  /** This replica went on alone since the last answer. */
  readonly returning: boolean;
  readonly leaving?: boolean;
}

/** What the script answers; see take-tokens.lua for each field. */
export interface ScriptAnswer {
  readonly id: string;
  readonly money: number;
  readonly reads: number;
  readonly at: number;
  readonly order: number;
  readonly out: number;
  readonly lowered: number;
  readonly placed: boolean;
  readonly waitMs?: number;
  readonly intervalMs: number;
  readonly aheadMoney: number;
  readonly aheadReads: number;
  readonly othersMoney: number;
  readonly othersReads: number;
  readonly limit: number;
  readonly remaining: number;
  readonly fullMs: number;
  readonly replicas: number;
}

/** This process's end of the budget in Redis: asks for tokens and brings reports along. */
export class SharedBudget {
  readonly #options: SharedBudgetOptions;
  /** Granted by Redis and used; told again when Redis may have lost them. */
  readonly #used = new RecentTakes(LONGEST_WINDOW_MS);
  /** Used without Redis, or so long after it granted them that they count anew. */
  #uncounted = new RecentTakes(LONGEST_WINDOW_MS);
  #stateId = "";
  #limit: number;
  #replicas = 1;
  #unused = new Map<number, number>();
  #answer: (RateLimitReading & Pick<SharedToken, "order" | "out" | "lowered">) | undefined;
  #rejectedOrder = 0;
  #heldUntil = -Infinity;
  #toldLimit: number | undefined;
  #unsettled = 0;
  #askedAt = -Infinity;
  /** A connection broke: what Redis was told may be lost. */
  #doubtful = false;

  constructor(options: SharedBudgetOptions) {
    this.#options = options;
    this.#limit = options.initialLimit;
  }

  /** Requests a second, as last heard. */
  get limit(): number {
    return this.#limit;
  }

  /** How many replicas there were, this one included, as last heard. */
  get replicas(): number {
    return this.#replicas;
  }

  /** Whether a call that was given up may still be on its way; asking on would only pile them up. */
  get stalled(): boolean {
    return this.#unsettled > 0 && performance.now() - this.#askedAt < STALLED_MS;
  }

  /** Something waits to be told that others should know soon. */
  get hasNews(): boolean {
    return this.#unused.size > 0 || this.#answer !== undefined || this.#uncounted.latestAt > 0;
  }

  /**
   * One round trip: reports what there is to report and asks for tokens.
   * @throws RedisTimeout, or what Redis or its connection failed with.
   */
  async ask(ask: Ask): Promise<ScriptAnswer> {
    const { client, keys } = this.#options;
    const now = performance.now();
    const uncounted = this.#uncounted;
    const [answer, toldLimit] = [this.#answer, this.#toldLimit];
    const request = JSON.stringify(this.#request(ask, uncounted.ago(now), now));
    this.#uncounted = new RecentTakes(LONGEST_WINDOW_MS);
    this.#answer = undefined;
    this.#toldLimit = undefined;
    // Not told again if this call fails: it may have been heard, and a token comes back once.
    this.#unused.clear();
    const rejectedOrder = this.#rejectedOrder;
    const doubtful = this.#doubtful;
    this.#askedAt = now;
    try {
      const text = await within(DEADLINE_MS, this.#watched(script.run(client, [keys.bucket], [request])));
      const told = JSON.parse(String(text)) as ScriptAnswer;
      this.#stateId = told.id;
      this.#limit = told.limit;
      this.#replicas = told.replicas;
      if (doubtful) this.#doubtful = false;
      if (this.#rejectedOrder === rejectedOrder) this.#rejectedOrder = 0;
      return told;
    } catch (error) {
      this.#uncounted = merged(uncounted, this.#uncounted);
      this.#answer ??= answer;
      this.#toldLimit ??= toldLimit;
      throw error;
    }
  }
}

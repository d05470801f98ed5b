import type { RedisClient } from "../../redis/connect.ts";
import { within } from "../../redis/deadline.ts";
import { readyWithin } from "../../redis/ready.ts";
import { loadScript } from "../../redis/script.ts";
import type { RateLimitReading } from "../headers.ts";
import { RecentTakes } from "./recent-takes.ts";

export interface SharedBudgetOptions {
  readonly client: RedisClient;
  readonly key: string;
  /** Unique among all processes that use the account at the same time. */
  readonly replicaId: string;
  readonly initialLimit: number;
  readonly reserve: number;
  /** A question that was given up has come to its end after all. */
  readonly onLateAnswer: () => void;
}

/** Tokens wanted, for money and for other calls. */
export interface Wants {
  readonly money: number;
  readonly reads: number;
}

/** What the replica asks for; see take-tokens.lua. */
export interface Question extends Wants {
  readonly patienceMs: number;
  readonly returning: boolean;
  readonly leaving: boolean;
}

/** What the script answers; see take-tokens.lua. */
export interface Answer extends Wants {
  readonly id: string;
  readonly at: number;
  readonly order: number;
  readonly out: number;
  readonly lowered: number;
  readonly placed: boolean;
  readonly waitMs?: number;
  readonly againMs?: number;
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

/** A token that Redis granted. */
export type SharedToken = Pick<Answer, "id" | "at" | "order" | "out" | "lowered">;

/** The granted tokens, those for money first. */
export function tokensOf(answer: Answer): SharedToken[] {
  const { id, at, lowered, order, out, money, reads } = answer;
  return Array.from({ length: money + reads }, (_, nth) => {
    return { id, at, lowered, order: order + nth + 1, out: out + nth + 1 };
  });
}

/** What the newest answer told, and the take that it belongs to. */
interface NewestAnswer extends Pick<Answer, "order" | "out" | "lowered"> {
  readonly limit: number | undefined;
  readonly remaining: number | undefined;
}

/**
 * This replica's end of the budget in Redis: brings reports along and asks for tokens. Reports are
 * repeated until they were heard, except of unused tokens: those come back once at most.
 */
export class SharedBudget {
  readonly #options: SharedBudgetOptions;
  /** Granted and used; told again when Redis may have forgotten them. */
  readonly #used = new RecentTakes(LONGEST_WINDOW_MS);
  /** Used without Redis. */
  readonly #uncounted = new RecentTakes(LONGEST_WINDOW_MS);
  readonly #unused = new Map<number, number>();
  #newest: NewestAnswer | undefined;
  #rejected: { readonly order: number; readonly until: number } | undefined;
  #told: { readonly limit: number } | undefined;
  #stateId = "";
  #limit: number;
  #replicas = 1;
  /** Questions that neither were answered nor failed, in time or late. */
  #open = 0;
  #askedAt = -Infinity;
  #answeredAt = -Infinity;
  #doubtful = false;

  constructor(options: SharedBudgetOptions) {
    this.#options = options;
    this.#limit = options.initialLimit;
  }

  /** Requests a second, as last heard. */
  get limit(): number {
    return this.#limit;
  }

  /** How many replicas there are, this one included, as last heard. */
  get replicas(): number {
    return this.#replicas;
  }

  /** A question is still on its way: to ask more of a server that stands still only piles them up. */
  get stalled(): boolean {
    return this.#open > 0 && performance.now() - this.#askedAt < STALLED_MS;
  }

  /** A granted token is being used. */
  use(now: number): void {
    this.#used.add(1, now);
  }

  /** A token was used that Redis knows nothing of. */
  useUncounted(now: number): void {
    this.#uncounted.add(1, now);
  }

  /** A granted token will not be used, or was not. */
  giveBack({ id, at }: SharedToken): void {
    if (id === this.#stateId) this.#unused.set(at, (this.#unused.get(at) ?? 0) + 1);
  }

  /** An answer's headers. Of several before the next question the newest take's are what counts. */
  observe({ id, order, out, lowered }: SharedToken, reading: RateLimitReading): void {
    const { limit, remaining } = reading;
    if (id !== this.#stateId || (limit === undefined && remaining === undefined)) return;
    if (this.#newest && order < this.#newest.order) return;
    this.#newest = { order, out, lowered, limit: limit ?? this.#newest?.limit, remaining };
  }

  /** The upstream refused; without a token if Redis knows nothing of that take. */
  reject(until: number, token?: SharedToken): void {
    const order = token?.id === this.#stateId ? token.order : 0;
    this.#rejected = {
      order: Math.max(order, this.#rejected?.order ?? 0),
      until: Math.max(until, this.#rejected?.until ?? 0),
    };
  }

  /** An answer told this limit to a call that was sent without Redis, at `sentAt`. */
  tellLimit(limit: number, sentAt: number): void {
    // Redis may have heard better since it is back.
    if (sentAt < this.#answeredAt) return;
    this.#limit = limit;
    this.#told = { limit };
  }

  /**
   * One round trip.
   * @throws RedisTimeout, or whatever Redis or its connection failed with.
   */
  async ask(question: Question): Promise<Answer> {
    const now = performance.now();
    // Told as long as it holds: Redis may forget it meanwhile.
    if (this.#rejected && this.#rejected.until <= now) this.#rejected = undefined;
    const { client, key, replicaId, reserve } = this.#options;
    const [newest, rejected, told, doubtful] = [
      this.#newest,
      this.#rejected,
      this.#told,
      this.#doubtful,
    ];
    const request = JSON.stringify({
      ...question,
      replica: replicaId,
      state: this.#stateId,
      recent: this.#used.latestAt > now - LONGEST_LOSS_MS,
      limit: this.#limit,
      reserve,
      spent: [...(doubtful ? this.#used.tell(now) : []), ...this.#uncounted.tell(now)],
      unused: [...this.#unused],
      told: told?.limit,
      answer: newest,
      rejected: rejected && {
        order: rejected.order,
        ms: Math.max(0, Math.ceil(rejected.until - now)) + 1,
      },
    });
    this.#unused.clear();
    this.#askedAt = now;
    const first = this.#stateId === "";
    const run = async () => {
      if (first) await readyWithin(FIRST_DEADLINE_MS, client);
      return await script.run(client, [key], [request]);
    };
    const reply = await within(first ? FIRST_DEADLINE_MS : DEADLINE_MS, this.#watch(run()));
    const answer = JSON.parse(String(reply)) as Answer;
    this.#uncounted.clearTold();
    if (this.#newest === newest) this.#newest = undefined;
    if (this.#told === told) this.#told = undefined;
    if (doubtful) this.#doubtful = false;
    if (answer.id !== this.#stateId) this.#enter(answer.id);
    this.#limit = this.#told?.limit ?? answer.limit;
    this.#replicas = answer.replicas;
    this.#answeredAt = performance.now();
    return answer;
  }

  /** Another state, whose takes begin anew: reports about the old one mean nothing to it. */
  #enter(stateId: string): void {
    this.#stateId = stateId;
    this.#unused.clear();
    this.#newest = undefined;
    if (this.#rejected) this.#rejected = { ...this.#rejected, order: 0 };
  }

  /** Follows a question to its end, which may come long after it was given up. */
  #watch<T>(reply: Promise<T>): Promise<T> {
    const askedAt = performance.now();
    const ended = (failed: boolean) => {
      this.#open--;
      // A connection that broke, or a server that lost its memory: what it was told may be gone.
      if (failed) this.#doubtful = true;
      if (performance.now() - askedAt > DEADLINE_MS) this.#options.onLateAnswer();
    };
    this.#open++;
    reply.then(
      () => ended(false),
      () => ended(true),
    );
    return reply;
  }
}

const script = loadScript(new URL("./take-tokens.lua", import.meta.url));

/** Longest wait for one answer. */
const DEADLINE_MS = 250;

/** The first answer may take longer: a process that starts is busy, and may not be connected yet. */
const FIRST_DEADLINE_MS = 1_000;

/** After this a question that was given up no longer keeps others back. */
const STALLED_MS = 1_000;

/** A token taken is out for no longer: a second, its margin, and the most that rejections add. */
const LONGEST_WINDOW_MS = 4_050;

/** For this long after its last take a replica minds that the state it was counted in is gone. */
const LONGEST_LOSS_MS = 2_000;

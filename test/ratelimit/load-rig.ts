import assert from "node:assert/strict";
import { GatewayError } from "../../src/errors.ts";
import type { Permit, Priority, TurnTaker } from "../../src/ratelimit/bucket.ts";
import type { TokenBucket } from "../../src/ratelimit/queued-bucket.ts";
import { seeded } from "../random.ts";
import type { ModelledUpstream } from "./modelled-upstream.ts";
import type { VirtualClock } from "./virtual-clock.ts";

/** One caller's load, on random replicas. */
export interface CallerLoad {
  /** Default: all calls without a caller count as one caller's. */
  readonly caller?: TurnTaker;
  readonly perSecond: number;
  /** Default: read. */
  readonly priority?: Priority;
  /** Calls keep a distance, so that none waits behind another one of the same caller. */
  readonly spaced?: true;
}

export interface LoadOptions {
  /** The load's time: a busy machine does not matter. */
  readonly clock: VirtualClock;
  /** The buckets of the replicas of one account. */
  readonly buckets: readonly TokenBucket[];
  readonly upstream: ModelledUpstream;
  readonly callers: readonly CallerLoad[];
  readonly seconds: number;
  /** Largest random addition to the latency, each way, in milliseconds. Default: 20. */
  readonly jitterMs?: number | undefined;
  /** Runs beside the load, which lasts at least until the script is done. */
  readonly script?: ((load: Load) => Promise<void>) | undefined;
  readonly ignoreAnswers?: boolean | undefined;
  readonly seed?: number | undefined;
}

/** A load under way. Times are milliseconds since its start. */
export interface Load {
  readonly upstream: ModelledUpstream;
  now(): number;
  pause(ms: number): Promise<void>;
  /** Notes a point in time to measure from. */
  mark(name: string): void;
  /** Ends a replica with all that it was about to send. */
  kill(replica: number): void;
}

/** One call; without `sentAt` it was refused, or waited until the end. */
export interface Call {
  readonly load: CallerLoad;
  readonly replica: number;
  readonly askedAt: number;
  isRefused?: boolean;
  sentAt?: number;
  arrivedAt?: number;
  accepted?: boolean;
  /** Rejected, but sent before any answer named the lower limit: no client can avoid it. */
  isUnforeseeable?: boolean;
}

export type LoadResult = Awaited<ReturnType<typeof runLoad>>;

/** Reads and money of callers who together want five times the limit. */
export function mixedLoad(limit: number, moneyShare = 0.1): CallerLoad[] {
  const all: CallerLoad[] = [
    { priority: "money", perSecond: 5 * limit * moneyShare },
    { perSecond: 5 * limit * (1 - moneyShare) },
  ];
  return all.filter(({ perSecond }) => perSecond > 0);
}

/** Lets replicas of one account send to one modelled upstream. */
export async function runLoad(options: LoadOptions) {
  const { clock, buckets, upstream, jitterMs = 20, seed = 1 } = options;
  const { limit } = upstream;
  const random = seeded(seed);
  const start = clock.now();
  const now = () => clock.now() - start;
  const pause = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const latency = () => 5 + random() * jitterMs;
  const { signal } = new AbortController();
  const alive = [...buckets.keys()];
  const calls: Call[] = [];
  const marks = new Map<string, number>();
  let [newsAt, latestArrival, isOver, budget] = [Infinity, 0, false, 0];

  async function call(load: CallerLoad): Promise<void> {
    const { caller, priority = "read" } = load;
    const replica = alive[Math.floor(random() * alive.length)]!;
    const made: Call = { load, replica, askedAt: now() };
    calls.push(made);
    let permit: Permit;
    try {
      permit = await buckets[replica]!.take({ priority, signal, caller });
    } catch (error) {
      assert.ok(error instanceof GatewayError, `${error}`);
      if (isOver || error.code === "UNAVAILABLE") return;
      assert.equal(error.code, "RESOURCE_EXHAUSTED");
      made.isRefused = true;
      return;
    }
    if (!alive.includes(replica)) return;
    made.sentAt = now();
    const arrivesAt = made.sentAt + latency();
    await pause(arrivesAt - made.sentAt);
    latestArrival = Math.max(latestArrival, arrivesAt);
    const { accepted, headers } = upstream.request(latestArrival);
    const isForeseeable = upstream.limit === limit || made.sentAt >= newsAt + newsMs;
    Object.assign(made, { arrivedAt: latestArrival, accepted });
    made.isUnforeseeable = !accepted && !isForeseeable;
    await pause(latency());
    if (headers.limit !== String(limit)) newsAt = Math.min(newsAt, now());
    if (options.ignoreAnswers) return;
    if (accepted) permit.observe(headers);
    else permit.rejected(headers);
  }

  const open: Promise<void>[] = [];
  for (const [nth, load] of options.callers.entries()) {
    // The times of a caller's calls do not depend on the other callers.
    const arrivals = seeded(seed + nth + 1);
    const gap = () => (load.spaced ? 0.5 + arrivals() : -Math.log(1 - arrivals()));
    const offer = () => {
      if (isOver) return;
      open.push(call(load));
      clock.after((gap() * 1_000) / load.perSecond, offer);
    };
    offer();
  }
  let isScriptOver = options.script === undefined;
  const script = options.script?.({
    ...{ upstream, now, pause, mark: (name) => marks.set(name, now()) },
    kill(replica) {
      alive.splice(alive.indexOf(replica), 1);
      buckets[replica]?.close();
    },
  });
  const scripted = script?.finally(() => {
    isScriptOver = true;
  });
  while (now() < options.seconds * 1_000 || !isScriptOver) {
    await clock.run(10);
    budget += upstream.limit / 100;
  }
  const endedAt = now();
  isOver = true;
  for (const bucket of buckets) bucket.close();
  await clock.runUntil(Promise.all(open));
  await scripted;
  return { calls, marks, endedAt, /** Requests that the upstream would have accepted. */ budget };
}

/** Milliseconds after which all replicas know, through Redis, what an answer to one of them said. */
const newsMs = 20;

type Arrived = Call & Required<Pick<Call, "sentAt" | "arrivedAt" | "accepted">>;

/** The calls that reached the upstream, in their order. */
function arrivedOf({ calls }: Pick<LoadResult, "calls">): Arrived[] {
  const arrived = calls.filter((call): call is Arrived => call.arrivedAt !== undefined);
  return arrived.sort((a, b) => a.arrivedAt - b.arrivedAt);
}

/** Most requests that arrived in any second. */
function mostInAnySecond(calls: readonly Arrived[]): number {
  let most = 0;
  for (let first = 0, last = 0; last < calls.length; last++) {
    while (calls[first]!.arrivedAt <= calls[last]!.arrivedAt - 1_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Longest wait of the money calls that began after `from`. */
export function longestMoneyWaitMs({ calls }: LoadResult, from: number): number {
  const waits = calls.map(({ load, askedAt, sentAt = 0 }) =>
    load.priority === "money" && askedAt > from ? sentAt - askedAt : 0,
  );
  return Math.max(0, ...waits);
}

export function figuresOf(result: LoadResult) {
  const arrived = arrivedOf(result);
  const rejected = arrived.filter(({ accepted }) => !accepted);
  return {
    result,
    sent: arrived.length,
    rejected: rejected.length,
    avoidable: rejected.filter(({ isUnforeseeable }) => !isUnforeseeable).length,
    used: (arrived.length - rejected.length) / result.budget,
    mostInAnySecond: mostInAnySecond(arrived),
    // Ignores the start: a burst empties the full bucket, which takes a second to refill.
    longestMoneyWaitMs: longestMoneyWaitMs(result, 2_000),
    refusedMoney: result.calls.filter((call) => call.isRefused && call.load.priority === "money")
      .length,
  };
}

/** The bucket is full at first and grants everything: that does not count for the turns. */
export const warmUpMs = 3_000;

export type TurnsFigures = ReturnType<typeof turnsOf>;

/** What each caller got, behind the warm-up. */
export function turnsOf(result: LoadResult, limit: number) {
  const callers = [...Map.groupBy(result.calls, ({ load }) => load)].map(([{ caller }, made]) => {
    const all = made.filter(({ askedAt }) => askedAt >= warmUpMs);
    const waits = all
      .flatMap(({ askedAt, sentAt }) => (sentAt === undefined ? [] : sentAt - askedAt))
      .sort((a, b) => a - b);
    return {
      ...{ name: caller?.name, offered: all.length, granted: waits.length },
      refused: all.filter(({ isRefused }) => isRefused).length,
      p99WaitMs: waits[Math.ceil(waits.length * 0.99) - 1] ?? 0,
    };
  });
  const sent = arrivedOf(result).filter(({ arrivedAt }) => arrivedAt >= warmUpMs);
  return {
    ...{ callers, jain: jainOf(callers), sent: sent.length },
    used: sent.length / (((result.endedAt - warmUpMs) / 1_000) * limit),
    rejected: sent.filter(({ accepted }) => !accepted).length,
  };
}

/**
 * Jain's fairness index over each caller's granted calls as a part of those it could use: all that
 * it offered, or an even share.
 */
export function jainOf(callers: readonly { offered: number; granted: number }[]): number {
  let left = callers.reduce((sum, { granted }) => sum + granted, 0);
  const byDemand = callers.toSorted((a, b) => a.offered - b.offered);
  const parts = byDemand.map(({ offered, granted }, nth) => {
    const usable = Math.min(offered, left / (byDemand.length - nth));
    left -= usable;
    return granted / usable;
  });
  const sum = parts.reduce((all, part) => all + part, 0);
  return sum ** 2 / (parts.length * parts.reduce((all, part) => all + part ** 2, 0));
}

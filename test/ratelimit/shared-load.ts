import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { GatewayError } from "../../src/errors.ts";
import type { Permit, Priority } from "../../src/ratelimit/bucket.ts";
import type { Clock } from "../../src/ratelimit/clock.ts";
import { QueuedBucket, type TokenBucket } from "../../src/ratelimit/queued-bucket.ts";
import { connectRedis, type RedisClient } from "../../src/redis/connect.ts";
import { accountKeys } from "../../src/redis/keys.ts";
import { type Report, reportTo } from "../../src/report.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { until } from "../until.ts";
import { type ModelledUpstream, slidingWindowUpstream } from "./modelled-upstream.ts";
import type { VirtualClock } from "./virtual-clock.ts";

export interface LoadOptions {
  /** Only a `bucket` of another kind does without. */
  readonly redisUrl?: string;
  readonly limit: number;
  readonly seconds: number;
  /** Default: 3. */
  readonly replicas?: number;
  /** Share of the calls that move money. Default: a tenth. */
  readonly moneyShare?: number;
  readonly reserve?: number;
  /** Largest random addition to the latency, each way, in milliseconds. Default: 20. */
  readonly jitterMs?: number;
  /** Makes the upstream. Default: a sliding window of one second. */
  readonly model?: (limit: number) => ModelledUpstream;
  /** Runs beside the load, which lasts at least until the script is done. */
  readonly script?: (load: Load) => Promise<void>;
  /** Wraps a replica's connection to Redis. Default: no wrapper. */
  readonly tamper?: (client: RedisClient) => RedisClient;
  /** Makes a replica's bucket. Default: on Redis. */
  readonly bucket?: (replica: Replica) => TokenBucket;
  readonly ignoreAnswers?: boolean;
  readonly clock: VirtualClock;
  readonly random: () => number;
}

export interface Replica {
  readonly id: string;
  readonly clock: Clock;
  readonly client: RedisClient | undefined;
  readonly account: string;
  readonly limit: number;
  readonly reserve: number;
  readonly report: Report;
}

/** A load under way. Times are milliseconds since its start. */
export interface Load {
  readonly upstream: ModelledUpstream;
  now(): number;
  pause(ms: number): Promise<void>;
  /** Ends one replica as SIGKILL would: it does not announce its end. */
  killReplica(): void;
  /** Each change of a replica's source of tokens. */
  readonly changes: { readonly at: number; readonly source: TokenBucket["source"] }[];
  /** Notes a point in time to measure from. */
  mark(name: string): void;
}

export interface Call {
  readonly replica: number;
  readonly priority: Priority;
  readonly askedAt: number;
  readonly sentAt: number;
  readonly arrivedAt: number;
  readonly accepted: boolean;
  /** Rejected, but sent before any answer named the lower limit: no client can avoid it. */
  readonly unforeseeable: boolean;
}

export interface LoadResult {
  readonly refusedMoney: number;
  /** Calls that were sent, in order of arrival. */
  readonly calls: readonly Call[];
  readonly changes: Load["changes"];
  readonly marks: ReadonlyMap<string, number>;
  /** Requests that the upstream would have accepted while the load lasted. */
  readonly budget: number;
  readonly endedAt: number;
}

/** Offered load as a multiple of the limit. */
const overload = 5;

/** Lets replicas of one account send to one modelled upstream. */
export async function runLoad(options: LoadOptions): Promise<LoadResult> {
  const { clock, random } = options;
  const { limit, seconds, moneyShare = 0.1, reserve = 0.2, jitterMs = 20 } = options;
  const upstream = (options.model ?? slidingWindowUpstream)(limit);
  const account = randomUUID();
  const start = clock.now();
  const now = () => clock.now() - start;
  const pause = (ms: number) => new Promise<void>((resolve) => clock.after(ms, resolve));
  const changes: Load["changes"] = [];
  const marks = new Map<string, number>();
  const calls: Call[] = [];
  let [refusedMoney, newsAt, latestArrival, ending] = [0, Infinity, 0, false];

  const replicas = await Promise.all(
    Array.from({ length: options.replicas ?? 3 }, async (_, number) => {
      const { redisUrl, tamper = (client: RedisClient) => client } = options;
      const redis = redisUrl ? connectRedis(new Secret(redisUrl), () => {}) : undefined;
      if (redis) await until(async () => redis.client.status === "ready");
      const replica: Replica = {
        id: `${account} ${number}`,
        clock,
        client: redis && tamper(redis.client),
        account,
        limit,
        reserve,
        report: reportTo({
          budgetSource: ({ source }) => void changes.push({ at: now(), source }),
        }),
      };
      return { redis, bucket: (options.bucket ?? bucketOnRedis)(replica), number, dead: false };
    }),
  );

  const latency = () => 5 + random() * jitterMs;
  const { signal } = new AbortController();

  type Started = (typeof replicas)[number];
  async function call(priority: Priority, replica: Started): Promise<void> {
    const askedAt = now();
    let permit: Permit;
    try {
      permit = await replica.bucket.take({ priority, signal });
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
      if (ending || error.code === "UNAVAILABLE") return;
      assert.equal(error.code, "RESOURCE_EXHAUSTED");
      if (priority === "money") refusedMoney++;
      return;
    }
    if (replica.dead) return;
    const sentAt = now();
    const onTheWayMs = latency();
    await pause(onTheWayMs);
    const arrivedAt = Math.max(latestArrival, sentAt + onTheWayMs);
    latestArrival = arrivedAt;
    const { accepted, headers } = upstream.request(arrivedAt);
    const foreseeable = upstream.limit === limit || sentAt >= newsAt + NEWS_MS;
    calls.push({
      replica: replica.number,
      priority,
      askedAt,
      sentAt,
      arrivedAt,
      accepted,
      unforeseeable: !accepted && !foreseeable,
    });
    await pause(latency());
    if (headers.limit !== String(limit)) newsAt = Math.min(newsAt, now());
    if (options.ignoreAnswers) return;
    if (accepted) permit.observe(headers);
    else permit.rejected(headers);
  }

  const load: Load = {
    upstream,
    now,
    pause,
    changes,
    killReplica() {
      const replica = replicas.pop()!;
      replica.dead = true;
      replica.bucket.close();
      replica.redis?.client.disconnect();
    },
    mark: (name) => marks.set(name, now()),
  };
  let budget = 0;
  let at = now();
  let due = 0;
  const scripted = Promise.resolve(options.script?.(load)).then(
    () => undefined,
    (error: unknown) => ({ error }),
  );
  let scriptEnded = false;
  void scripted.then(() => {
    scriptEnded = true;
  });
  const open: Promise<void>[] = [];
  while (now() < seconds * 1_000 || !scriptEnded) {
    await clock.run(2);
    const passed = now() - at;
    at += passed;
    budget += (passed / 1_000) * upstream.limit;
    due += (passed / 1_000) * limit * overload;
    for (; due >= 1; due--) {
      const replica = replicas[Math.floor(random() * replicas.length)]!;
      open.push(call(random() < moneyShare ? "money" : "read", replica));
    }
  }
  const endedAt = now();
  ending = true;
  for (const { bucket } of replicas) bucket.close();
  const settled = await clock.runUntil(Promise.allSettled(open));
  const failed = settled.find(({ status }) => status === "rejected");
  await Promise.all(replicas.map(({ redis }) => redis?.close()));
  if (failed?.status === "rejected") throw failed.reason;
  const scriptFailure = await scripted;
  if (scriptFailure) throw scriptFailure.error;
  return { refusedMoney, calls, changes, marks, budget, endedAt };
}

/**
 * Milliseconds after which all replicas know, through Redis, what an answer to one of them said.
 */
const NEWS_MS = 20;

function bucketOnRedis({ id, account, limit, client, ...replica }: Replica) {
  assert.ok(client);
  return new QueuedBucket({
    ...{ ...replica, client },
    keys: accountKeys("test", account),
    replicaId: id,
    initialLimit: limit,
    maxWaitMs: 1_500,
  });
}

/** A bucket that shares with no other replica. */
export function localBucket({ limit, reserve, clock }: Replica): TokenBucket {
  return new QueuedBucket({ initialLimit: limit, reserve, maxWaitMs: 1_500, clock });
}

/** Most requests that arrived in any second. */
function mostInAnySecond(calls: readonly Call[]): number {
  const times = calls.map(({ arrivedAt }) => arrivedAt);
  let most = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while (times[first]! <= times[last]! - 1_000) first++;
    most = Math.max(most, last - first + 1);
  }
  return most;
}

/** Longest wait of the money calls that began after `from`. */
export function longestMoneyWaitMs({ calls }: LoadResult, from: number): number {
  const money = calls.filter(({ priority, askedAt }) => priority === "money" && askedAt > from);
  return Math.max(0, ...money.map(({ askedAt, sentAt }) => sentAt - askedAt));
}

/** Requests that were sent in a span of time, as a multiple of what the limit allows. */
export function usedBetween(result: LoadResult, limit: number, from: number, to: number): number {
  const sent = result.calls.filter(({ sentAt }) => sentAt >= from && sentAt < to).length;
  return sent / (((to - from) / 1_000) * limit);
}

export function figuresOf(result: LoadResult) {
  const { calls, budget } = result;
  const rejected = calls.filter(({ accepted }) => !accepted).length;
  return {
    sent: calls.length,
    rejected,
    avoidable: calls.filter((call) => !call.accepted && !call.unforeseeable).length,
    used: (calls.length - rejected) / budget,
    mostInAnySecond: mostInAnySecond(calls),
    // Ignores the start: a burst empties the full bucket, which takes a second to refill.
    longestMoneyWaitMs: longestMoneyWaitMs(result, 2_000),
    refusedMoney: result.refusedMoney,
  };
}

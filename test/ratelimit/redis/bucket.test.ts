import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it, type TestContext } from "node:test";
import type { Priority } from "../../../src/ratelimit/bucket.ts";
import {
  QueuedBucket,
  type RedisBucketOptions,
  type TokenBucket,
} from "../../../src/ratelimit/queued-bucket.ts";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { type Report, reportTo } from "../../../src/report.ts";
import { testTokenBucket } from "../../contracts/token-bucket.ts";
import { closing, ofSuite } from "../../of-suite.ts";
import { startCluster } from "../../redis/cluster.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { connected } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { Link, redisOn } from "./virtual-redis.ts";

describe("on Redis", { skip: withoutRedis, concurrency: true }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));
  // Started before all tests, which it would disturb.
  const cluster = ofSuite(startCluster);
  // Keeps the process alive, which a bucket's own timers do not.
  let alive: NodeJS.Timeout;
  before(() => {
    alive = setInterval(() => {}, 1_000);
  });
  after(() => clearInterval(alive));

  const create = (options: Partial<RedisBucketOptions> = {}) =>
    new QueuedBucket({
      client: redis.client,
      keys: accountKeys("test", randomUUID()),
      replicaId: randomUUID(),
      initialLimit: 10,
      reserve: 0,
      maxWaitMs: 10_000,
      ...options,
    });

  /** Replicas of one account, on a virtual clock: a busy machine does not matter. */
  function replicasOf(t: TestContext, count: number, options: Partial<RedisBucketOptions> = {}) {
    const clock = new VirtualClock();
    const shared = { client: redisOn(clock, redis.client, 1), clock };
    const keys = accountKeys("test", randomUUID());
    const join = () => closing(t, create({ ...shared, keys, ...options }));
    const replicas = Array.from({ length: count }, join);
    const [first, second] = replicas as [QueuedBucket, QueuedBucket];
    return {
      ...{ clock, key: keys.bucket, replicas, first, second },
      took: (bucket: TokenBucket) => clock.runUntil(take(bucket)),
      /** Lets time pass until it is so. */
      async until(isSo: () => boolean | Promise<boolean>) {
        const latest = clock.now() + 10_000;
        do {
          assert.ok(clock.now() < latest, `in vain: ${isSo}`);
          await clock.run(10);
        } while (!(await isSo()));
      },
    };
  }

  testTokenBucket("the Redis bucket", (clock, options) =>
    create({ ...options, client: redisOn(clock, redis.client, 1), clock }),
  );

  describe("replicas of one account", { concurrency: true }, () => {
    it("learn the limit from each other's answers, in a cluster too", async (t) => {
      const { client } = closing(t, await connected(cluster.url));
      const keys = accountKeys("test", randomUUID());
      const join = () => closing(t, create({ client, keys }));
      const [one, other] = [join(), join()];
      (await take(one)).observe({ limit: "20", remaining: "3", reset: "1" });
      await until(async () => other.status().limit === 20);
    });

    it("give up their place when the last waiting caller leaves", async (t) => {
      const { key, first, took, ...given } = replicasOf(t, 1, { initialLimit: 1 });
      await took(first);
      const caller = new AbortController();
      const waiting = take(first, "read", caller.signal);
      const waits = async () =>
        Object.values((await stateOf(key)).replicas)[0]!.callers.read["s:"] !== undefined;
      await given.until(waits);
      caller.abort();
      await assert.rejects(waiting, { code: "CANCELLED" });
      await given.until(async () => !(await waits()));
      assert.ok(given.clock.now() < 500, "not only once it could be served");
    });

    it("pass on the token of a caller that leaves during the request to Redis", async (t) => {
      const { first, clock } = replicasOf(t, 1, { initialLimit: 1 });
      const caller = new AbortController();
      const left = take(first, "read", caller.signal);
      const other = take(first);
      await Promise.resolve();
      caller.abort();
      await assert.rejects(left, { code: "CANCELLED" });
      await clock.runUntil(other);
      assert.ok(clock.now() < 100, `${clock.now()} ms`);
    });

    it("have no more than 256 callers in line together, however many wait", async (t) => {
      const options = { initialLimit: 20, maxWaitMs: 60_000 };
      const { key, replicas, first, took, ...given } = replicasOf(t, 2, options);
      const inLine = async () => {
        const known = Object.values((await stateOf(key)).replicas);
        return known
          .map(({ callers }) => Object.keys(callers.read).length)
          .toSorted((a, b) => a - b);
      };
      await given.until(async () => (await inLine()).length === 2);
      // Both hear of each other.
      for (const replica of replicas) await took(replica);
      const gone = new AbortController();
      const { signal } = gone;
      const calls = Array.from({ length: 300 }, (_, at) =>
        first.take({ priority: "read", signal, caller: { name: `caller ${at}` } }),
      );
      const waiting = Promise.allSettled(calls);
      await given.until(async () => (await inLine())[1] === 128);
      gone.abort();
      await waiting;
    });

    it("go on when the server's clock is set back", async (t) => {
      const { key, clock, first, took } = replicasOf(t, 1, { initialLimit: 2 });
      for (let calls = 0; calls < 2; calls++) await took(first);
      await redis.client.eval(AHEAD, 1, key, 3_600_000);
      const since = clock.now();
      for (let calls = 0; calls < 2; calls++) await took(first);
      assert.ok(clock.now() - since >= 900, "what was taken still counts");
    });

    it("follow newer answers after Redis lost its data", async (t) => {
      const { key, clock, first, took, ...given } = replicasOf(t, 1, { initialLimit: 100 });
      const calls = Array.from({ length: 50 }, () => take(first));
      const old = await clock.runUntil(Promise.all(calls));
      await redis.client.del(key);
      const permit = await took(first);
      old.at(-1)!.observe({ limit: "90", remaining: "50", reset: "1" });
      permit.observe({ limit: "80", remaining: "79", reset: "1" });
      await given.until(() => first.status().limit === 80);
    });

    it("begin anew, without tokens, when the state in Redis is damaged", async (t) => {
      for (const damaged of ["", "damaged", "\x93\x01"]) {
        const changes: BudgetSource[] = [];
        const report = reportOf((source) => changes.push(source));
        const { key, clock, first, took } = replicasOf(t, 1, { initialLimit: 2, report });
        await took(first);
        await redis.client.set(key, damaged);
        const since = clock.now();
        await took(first);
        assert.ok(clock.now() - since >= 400, "all that may have been taken counts");
        assert.deepEqual(changes, []);
      }
    });

    it("keep one key, which expires when it is not used", async (t) => {
      const { key, replicas, took } = replicasOf(t, 2);
      for (const replica of replicas) await took(replica);
      const account = key.slice(0, key.lastIndexOf(":"));
      assert.deepEqual(await redis.client.keys(`${account}*`), [key]);
      const seconds = await redis.client.ttl(key);
      assert.ok(seconds > 3_600 && seconds <= 86_400, `${seconds} s`);
    });
  });

  it("holds a token that Redis granted before the replica heard of a rejection", async (t) => {
    const clock = new VirtualClock();
    const bucket = closing(t, create({ client: redisOn(clock, redis.client, 20), clock }));
    const rejected = await clock.runUntil(take(bucket));
    let granted = 0;
    const next = take(bucket).then(() => granted++);
    // Redis has granted the token, and its reply is under way.
    await clock.run(10);
    assert.equal(granted, 0);
    rejected.rejected({ reset: "2" });
    await clock.run(1_900);
    assert.equal(granted, 0);
    await clock.run(1_000);
    await next;
  });

  describe("a replica that does not reach Redis", { concurrency: true }, () => {
    /** A bucket on virtual time, and from where it has its tokens. */
    function begin(t: TestContext, roundTripMs: number, link = new Link()) {
      const clock = new VirtualClock();
      const changes: { at: number; source: BudgetSource }[] = [];
      const bucket = create({
        ...{ client: redisOn(clock, redis.client, roundTripMs, link), clock, maxWaitMs: 5_000 },
        report: reportOf((source) => changes.push({ at: clock.now(), source })),
      });
      t.after(() => bucket.close());
      return { clock, bucket, changes };
    }

    it("goes on alone, without tokens at first and then with its share", async (t) => {
      const link = new Link();
      link.cut();
      const { clock, bucket, changes } = begin(t, 1, link);
      await clock.runUntil(Promise.all(Array.from({ length: 8 }, () => take(bucket, "money"))));
      const [alone, ...others] = changes;
      assert.deepEqual([alone?.source, others], ["share", []]);
      assert.ok(clock.now() - alone!.at >= 1_000, "the others may just have spent them");
      assert.equal(bucket.status().limit, 8);
      const next = () => clock.runUntil(take(bucket));
      (await next()).observe({ limit: "20", remaining: "19", reset: "1" });
      assert.equal(bucket.status().limit, 16);
      (await next()).rejected({ reset: "3600" });
      await assert.rejects(next(), { code: "RESOURCE_EXHAUSTED" });
    });

    it("goes on alone when Redis is too slow, and not when it is fast enough", async (t) => {
      for (const [roundTripMs, expected] of [
        [150, ["share"]],
        [15, []],
      ] as const) {
        const { clock, bucket, changes } = begin(t, roundTripMs);
        await clock.runUntil(Promise.all(Array.from({ length: 5 }, () => take(bucket))));
        const sources = changes.map(({ source }) => source);
        assert.deepEqual(sources, expected, `${roundTripMs} ms`);
      }
    });

    it("goes on alone while Redis is dead or stands still, and uses it again afterwards", async (t) => {
      const own = closing(t, await startRedis());
      const connection = closing(t, await connected(own.url));
      const bucket = closing(t, create({ client: connection.client, initialLimit: 100 }));
      const uses = (source: BudgetSource) =>
        until(async () => {
          await take(bucket);
          return bucket.source === source;
        });
      await own.command("SCRIPT", "FLUSH");
      // A script that Redis forgot is sent again.
      await uses("shared");
      await own.kill();
      await uses("share");
      await own.start();
      await uses("shared");
      own.pause();
      await uses("share");
      own.resume();
      await uses("shared");
    });

    it("waits for a connection that is being made", async (t) => {
      const clock = new VirtualClock();
      const changes: string[] = [];
      const report = reportOf((source) => changes.push(source));
      const reached = redisOn(clock, redis.client, 1);
      /** It is there as soon as somebody waits for it. */
      const connecting = {
        status: "connecting",
        on(_: "ready", hear: () => void) {
          connecting.status = "ready";
          hear();
        },
        off() {},
        evalsha: (...args: [string, number, ...string[]]) =>
          connecting.status === "ready"
            ? reached.evalsha(...args)
            : Promise.reject(new Error("Stream isn't writeable")),
      };
      const client = connecting as unknown as RedisClient;
      const bucket = closing(t, create({ client, clock, report }));
      await clock.runUntil(take(bucket));
      assert.deepEqual([connecting.status, changes], ["ready", []]);
    });
  });

  async function stateOf(key: string): Promise<State> {
    return JSON.parse(String(await redis.client.eval(STATE, 1, key))) as State;
  }
});

type BudgetSource = TokenBucket["source"];

/** A report that tells each change of the source of the tokens. */
function reportOf(onChange: (source: BudgetSource) => void): Report {
  return reportTo({ budgetSource: ({ source }) => onChange(source) });
}

interface State {
  readonly replicas: Readonly<
    Record<string, { readonly callers: Record<Priority, Record<string, unknown>> }>
  >;
}

const STATE = "return cjson.encode(cmsgpack.unpack(redis.call('GET', KEYS[1])))";

/** Moves the state's clock and all its takes ARGV[1] milliseconds ahead of the server's clock. */
const AHEAD = `
local state = cmsgpack.unpack(redis.call('GET', KEYS[1]))
state.last = state.last + ARGV[1]
for i = 1, #state.times do state.times[i] = state.times[i] + ARGV[1] end
redis.call('SET', KEYS[1], cmsgpack.pack(state))`;

function take(
  bucket: TokenBucket,
  priority: Priority = "read",
  signal: AbortSignal = new AbortController().signal,
) {
  return bucket.take({ priority, signal });
}

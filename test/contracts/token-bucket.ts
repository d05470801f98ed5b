import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { after, before, describe, it, type TestContext } from "node:test";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import type {
  Permit,
  Priority,
  TakeOptions,
  TokenBucket,
  TokenBucketOptions,
} from "../../src/ratelimit/bucket.ts";

/** Makes a bucket that shares no state with those made before. */
export type TokenBucketFactory = (
  options: TokenBucketOptions,
) => TokenBucket | Promise<TokenBucket>;

/**
 * Tests what every `TokenBucket` must do, on real clocks. Upper limits on time are left to the test
 * runner; where tokens may have been refilled meanwhile, the bound is computed from the time that
 * really passed.
 */
export function testTokenBucket(name: string, create: TokenBucketFactory): void {
  describe(`${name} as a token bucket`, { concurrency: true, timeout: 60_000 }, () => {
    // A bucket's own timers do not keep the process alive.
    let alive: NodeJS.Timeout;
    before(() => {
      alive = setInterval(() => {}, 1_000);
    });
    after(() => clearInterval(alive));

    async function bucketFor(t: TestContext, options: Partial<TokenBucketOptions>) {
      const bucket = await create({ initialLimit: 10, reserve: 0, maxWaitMs: 10_000, ...options });
      t.after(() => bucket.close());
      return bucket;
    }

    describe("tokens", { concurrency: true }, () => {
      it("grants a full bucket of tokens at once, and no more than that and the refill", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 5, maxWaitMs: 0 });
        const since = performance.now();
        const granted = await grantsOf(bucket, 20);
        assert.ok(granted.length >= 5, `${granted.length} granted`);
        assert.ok(granted.length <= 5 + refill(5, since), `${granted.length} granted`);
      });

      it("serves waiting calls when tokens are refilled", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 5 });
        await Promise.all(Array.from({ length: 8 }, () => take(bucket)));
      });

      it("takes back the token of a call that was never sent", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 1, maxWaitMs: 0 });
        for (let calls = 0; calls < 5; calls++) (await take(bucket)).release();
      });

      it("gives a released token to a waiting call", async (t) => {
        const since = performance.now();
        for (let rounds = 0; rounds < 20; rounds++) {
          const bucket = await bucketFor(t, { initialLimit: 1 });
          const permit = await take(bucket);
          const waiting = take(bucket);
          permit.release();
          await waiting;
        }
        // By refill alone this would take 20 s.
        assert.ok(performance.now() - since < 18_000);
      });

      it("counts only the first report to a permit", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 2, maxWaitMs: 0 });
        const since = performance.now();
        const [twice, answered] = [await take(bucket), await take(bucket)];
        answered.observe({ limit: "2" });
        answered.release();
        answered.rejected({ reset: "3600" });
        twice.release();
        twice.release();
        const granted = await grantsOf(bucket, 4);
        assert.ok(granted.length >= 1, "the released token is back");
        assert.ok(granted.length <= 1 + refill(2, since), `${granted.length} granted`);
      });
    });

    describe("the reserve", { concurrency: true }, () => {
      it("is available to calls that move money, but not to reads", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 4, reserve: 0.5, maxWaitMs: 0 });
        const since = performance.now();
        const reads = await grantsOf(bucket, 4, "read");
        assert.ok(reads.length >= 2 && reads.length <= 2 + refill(4, since));
        assert.ok((await grantsOf(bucket, 2, "money")).length === 2);
      });

      for (const [limit, reserve] of [
        [1, 0.2],
        [1, 1],
        [2, 0.9],
        [10, 1],
      ] as const) {
        it(`of ${reserve} lets reads through with a limit of ${limit}`, async (t) => {
          const bucket = await bucketFor(t, { initialLimit: limit, reserve });
          await take(bucket, { priority: "read" });
          await take(bucket, { priority: "read" });
        });
      }
    });

    describe("a waiting call", { concurrency: true }, () => {
      it("is served in order, money before reads", async (t) => {
        const bucket = await bucketFor(t, {});
        (await take(bucket)).rejected({ reset: "1" });
        const served: string[] = [];
        const calls = ["read 1", "read 2", "money 1", "read 3", "money 2"].map(async (call) => {
          await take(bucket, { priority: call.split(" ")[0] as Priority });
          served.push(call);
        });
        await Promise.all(calls);
        assert.deepEqual(served, ["money 1", "money 2", "read 1", "read 2", "read 3"]);
      });

      it("is refused at once if it would have to wait longer than maxWaitMs", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 5, maxWaitMs: 5_000 });
        (await take(bucket)).rejected({ reset: "3600" });
        const { retryAfterMs } = await refusal(take(bucket), "RESOURCE_EXHAUSTED");
        assert.ok(retryAfterMs! > 3_000_000 && retryAfterMs! <= 3_700_000, `${retryAfterMs} ms`);
      });

      it("is refused at once if the caller's deadline would come first", async (t) => {
        const bucket = await bucketFor(t, {});
        (await take(bucket)).rejected({ reset: "8" });
        const waiting = take(bucket, { deadlineMs: Date.now() + 4_000 });
        const { retryAfterMs } = await refusal(waiting, "RESOURCE_EXHAUSTED");
        assert.ok(retryAfterMs! > 4_000, `${retryAfterMs} ms`);
      });

      it("is refused with DEADLINE_EXCEEDED if its deadline is in the past", async (t) => {
        const bucket = await bucketFor(t, {});
        await refusal(take(bucket, { deadlineMs: Date.now() - 1 }), "DEADLINE_EXCEEDED");
      });

      it("is refused when the queue already takes maxWaitMs", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10, maxWaitMs: 2_000 });
        const calls = await Promise.allSettled(Array.from({ length: 500 }, () => take(bucket)));
        const served = calls.filter(({ status }) => status === "fulfilled").length;
        assert.ok(served >= 10 && served <= 100, `${served} served`);
      });

      it("ends when its signal aborts, with the reason as error", async (t) => {
        const bucket = await bucketFor(t, {});
        (await take(bucket)).rejected({ reset: "8" });
        const reasons: [unknown, ErrorCode][] = [
          [undefined, "CANCELLED"],
          [new DOMException("too late", "TimeoutError"), "DEADLINE_EXCEEDED"],
          [new GatewayError("UNAVAILABLE", "going away"), "UNAVAILABLE"],
        ];
        for (const [reason, code] of reasons) {
          const caller = new AbortController();
          const waiting = take(bucket, { signal: caller.signal });
          await Promise.resolve();
          caller.abort(reason);
          await refusal(waiting, code);
          await refusal(take(bucket, { signal: caller.signal }), code);
          assert.equal(getEventListeners(caller.signal, "abort").length, 0);
        }
      });

      it("does not hold up later calls once it was aborted", async (t) => {
        const since = performance.now();
        for (let rounds = 0; rounds < 20; rounds++) {
          const bucket = await bucketFor(t, { initialLimit: 1 });
          const permit = await take(bucket);
          const caller = new AbortController();
          const first = take(bucket, { signal: caller.signal });
          const second = take(bucket);
          caller.abort();
          await refusal(first, "CANCELLED");
          permit.release();
          await second;
        }
        // If the token went to the aborted call, the refill alone would take 20 s.
        assert.ok(performance.now() - since < 18_000);
      });

      it("leaves no listener on the signal once served", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 2 });
        const { signal } = new AbortController();
        await Promise.all(Array.from({ length: 4 }, () => take(bucket, { signal })));
        assert.equal(getEventListeners(signal, "abort").length, 0);
      });

      it("fails with UNAVAILABLE when the bucket closes, and so do later calls", async (t) => {
        const bucket = await bucketFor(t, {});
        (await take(bucket)).rejected({ reset: "8" });
        const { signal } = new AbortController();
        const waiting = [take(bucket, { signal }), take(bucket, { signal, priority: "money" })];
        const refused = waiting.map((call) => refusal(call, "UNAVAILABLE"));
        await bucket.close();
        await Promise.all(refused);
        await refusal(take(bucket), "UNAVAILABLE");
        assert.equal(getEventListeners(signal, "abort").length, 0);
      });
    });

    describe("an answer", { concurrency: true }, () => {
      it("sets the limit, up and down", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10 });
        assert.equal(bucket.status().limit, 10);
        for (const limit of [50, 20]) {
          (await take(bucket)).observe({ limit: String(limit) });
          await take(bucket);
          assert.equal(bucket.status().limit, limit);
        }
      });

      it("with a higher limit adds no tokens by itself", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 2, maxWaitMs: 0 });
        const since = performance.now();
        const [permit] = [await take(bucket), await take(bucket)];
        permit.observe({ limit: "5", remaining: "4" });
        const granted = await grantsOf(bucket, 10);
        assert.ok(granted.length <= refill(5, since), `${granted.length} granted`);
      });

      it("with less remaining than expected takes tokens off", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10, maxWaitMs: 0 });
        const since = performance.now();
        (await take(bucket)).observe({ limit: "10", remaining: "2" });
        const granted = await grantsOf(bucket, 10);
        assert.ok(granted.length <= 2 + refill(10, since), `${granted.length} granted`);
      });

      it("with more remaining than expected adds no tokens", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 5, maxWaitMs: 0 });
        const since = performance.now();
        for (const permit of await grantsOf(bucket, 5)) permit.observe({ remaining: "1000" });
        const granted = await grantsOf(bucket, 10);
        assert.ok(granted.length <= refill(5, since), `${granted.length} granted`);
      });

      it("with a remaining that only counts our own calls takes no tokens off", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10, maxWaitMs: 0 });
        const permits = await grantsOf(bucket, 5);
        for (const [at, permit] of permits.entries()) {
          permit.observe({ limit: "10", remaining: String(9 - at) });
        }
        assert.equal((await grantsOf(bucket, 5)).length, 5);
      });

      it("that is older than one already seen changes nothing", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10, maxWaitMs: 0 });
        const [older, newer] = [await take(bucket), await take(bucket)];
        newer.observe({ limit: "20", remaining: "8" });
        older.observe({ limit: "3", remaining: "0" });
        await take(bucket);
        assert.equal(bucket.status().limit, 20);
        assert.ok((await grantsOf(bucket, 5)).length === 5);
      });

      const nonsense = [
        undefined,
        "",
        " ",
        "-1",
        "+5",
        "2.5",
        "1e3",
        "0x10",
        "NaN",
        "Infinity",
        "5, 5",
        "five",
        "1000001",
        "99999999999999999999",
      ];
      it("with a limit or remaining that makes no sense changes nothing", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 100, maxWaitMs: 0 });
        for (const text of nonsense) {
          (await take(bucket)).observe({ limit: text, remaining: text, reset: text });
        }
        (await take(bucket)).observe({ limit: "0" });
        await take(bucket);
        assert.equal(bucket.status().limit, 100);
        assert.ok((await grantsOf(bucket, 80)).length === 80);
      });
    });

    describe("a rejection", { concurrency: true }, () => {
      for (const reset of ["1", undefined, "", "-5", "soon", "1700000000"]) {
        it(`with Reset ${JSON.stringify(reset)} holds all calls back for a second`, async (t) => {
          const bucket = await bucketFor(t, {});
          const permit = await take(bucket);
          const since = performance.now();
          permit.rejected({ reset });
          await take(bucket, { priority: "money" });
          const waited = performance.now() - since;
          assert.ok(waited >= 990, `waited ${waited} ms`);
        });
      }

      it("holds all calls back for as long as Reset says", async (t) => {
        const bucket = await bucketFor(t, {});
        const permit = await take(bucket);
        const since = performance.now();
        permit.rejected({ limit: "10", remaining: "0", reset: "3" });
        await take(bucket);
        const waited = performance.now() - since;
        assert.ok(waited >= 2_990, `waited ${waited} ms`);
      });

      it("refuses at once waiting calls whose deadline comes before its Reset", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 1, maxWaitMs: 30_000 });
        const permit = await take(bucket);
        const waiting = take(bucket, { deadlineMs: Date.now() + 20_000 });
        const since = performance.now();
        permit.rejected({ reset: "60" });
        const { retryAfterMs } = await refusal(waiting, "RESOURCE_EXHAUSTED");
        assert.ok(retryAfterMs! > 50_000, `${retryAfterMs} ms`);
        assert.ok(performance.now() - since < 10_000);
      });
    });

    describe("the status", { concurrency: true }, () => {
      it("has the limit, the whole tokens left and the whole seconds until full", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10 });
        for (let taken = 0; taken < 4; taken++) await take(bucket);
        const { limit, remaining, resetSeconds } = bucket.status();
        assert.equal(limit, 10);
        assert.ok(Number.isInteger(remaining) && remaining >= 6 && remaining <= 10);
        assert.ok(Number.isInteger(resetSeconds) && resetSeconds >= 0 && resetSeconds <= 2);
      });

      it("does not count the reserve among the tokens that are left for reads", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10, reserve: 0.3, maxWaitMs: 0 });
        const leftForReads = () => {
          const { remaining, remainingForReads } = bucket.status();
          assert.equal(remainingForReads, Math.max(0, remaining - 3));
          return remainingForReads;
        };
        assert.equal(leftForReads(), 7);
        const [permit] = await grantsOf(bucket, 10);
        leftForReads();
        permit?.rejected({ reset: "60" });
        const { remaining, remainingForReads } = bucket.status();
        assert.deepEqual([remaining, remainingForReads], [0, 0]);
      });

      it("never has a negative number of tokens", async (t) => {
        const bucket = await bucketFor(t, { initialLimit: 10 });
        const permits = await grantsOf(bucket, 10);
        permits.at(-1)!.observe({ limit: "1", remaining: "0" });
        (await take(bucket)).release();
        const { remaining } = bucket.status();
        assert.ok(remaining >= 0 && remaining <= 1, `${remaining}`);
      });
    });
  });
}

function take(bucket: TokenBucket, options: Partial<TakeOptions> = {}): Promise<Permit> {
  return bucket.take({ priority: "read", signal: new AbortController().signal, ...options });
}

/** Requests `count` tokens in parallel; returns the granted permits in order of request. */
async function grantsOf(bucket: TokenBucket, count: number, priority: Priority = "read") {
  const calls = await Promise.allSettled(
    Array.from({ length: count }, () => take(bucket, { priority })),
  );
  return calls.flatMap((call) => (call.status === "fulfilled" ? [call.value] : []));
}

/** The most tokens that can have been refilled since then. */
function refill(limit: number, since: number): number {
  return Math.ceil(((performance.now() - since) / 1_000) * limit);
}

async function refusal(call: Promise<unknown>, code: ErrorCode): Promise<GatewayError["details"]> {
  const error = await call.then(
    () => assert.fail("expected a refusal"),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof GatewayError, String(error));
  assert.equal(error.code, code);
  return error.details;
}

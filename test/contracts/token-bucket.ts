import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it, type TestContext } from "node:test";
import { type ErrorCode, GatewayError } from "../../src/errors.ts";
import type {
  Permit,
  Priority,
  TakeOptions,
  TokenBucketOptions,
} from "../../src/ratelimit/bucket.ts";
import type { TokenBucket } from "../../src/ratelimit/queued-bucket.ts";
import { settled, VirtualClock } from "../ratelimit/virtual-clock.ts";

/** Makes a bucket on this clock that shares no state with those made before. */
export type TokenBucketFactory = (clock: VirtualClock, options: TokenBucketOptions) => TokenBucket;

/** How late an answer of a store, and the cells in which it counts, may make what is due. */
const lateMs = 15;

/** Tests what every `TokenBucket` must do, on virtual time. */
export function testTokenBucket(name: string, create: TokenBucketFactory): void {
  function begin(t: TestContext, options: Partial<TokenBucketOptions> = {}) {
    const clock = new VirtualClock();
    const bucket = create(clock, { initialLimit: 10, reserve: 0, maxWaitMs: 10_000, ...options });
    t.after(() => bucket.close());
    /** Asks for a token, and lets no time pass. */
    const ask = (asked: Partial<TakeOptions> = {}): Promise<Permit> =>
      bucket.take({ priority: "read", signal: new AbortController().signal, ...asked });
    return {
      ...{ clock, bucket, ask },
      take: (asked?: Partial<TakeOptions>) => clock.runUntil(ask(asked)),
      /** Asks for many tokens at once; returns the permits of those granted, in order. */
      async grantsOf(count: number, priority: Priority = "read") {
        const calls = Array.from({ length: count }, () => ask({ priority }));
        const ended = await clock.runUntil(Promise.allSettled(calls));
        return ended.flatMap((call) => (call.status === "fulfilled" ? [call.value] : []));
      },
      /** When a call gets its token. */
      timeOf: (call: Promise<unknown>) => call.then(() => clock.now()),
      async refusal(call: Promise<unknown>, code: ErrorCode): Promise<GatewayError["details"]> {
        const error = await clock.runUntil(
          call.then(
            () => assert.fail("expected a refusal"),
            (reason: unknown) => reason,
          ),
        );
        assert.ok(error instanceof GatewayError, String(error));
        assert.equal(error.code, code);
        return error.details;
      },
    };
  }

  function assertAt(at: number, dueMs: number): void {
    assert.ok(at >= dueMs && at <= dueMs + lateMs, `at ${at} ms, and due at ${dueMs} ms`);
  }

  describe(`${name} as a token bucket`, () => {
    describe("tokens", () => {
      it("are granted at once up to the limit, and come back a second and a margin later", async (t) => {
        const { clock, ask, grantsOf, timeOf } = begin(t, { initialLimit: 5 });
        await grantsOf(5);
        assertAt(clock.now(), 0);
        assertAt(await clock.runUntil(timeOf(ask())), 1_050);
        await grantsOf(4);
        assertAt(clock.now(), 1_050);
      });

      it("go to waiting calls evenly after a burst", async (t) => {
        const { clock, ask, timeOf } = begin(t, { maxWaitMs: 5_000 });
        const calls = Array.from({ length: 25 }, () => timeOf(ask()));
        const times = await clock.runUntil(Promise.all(calls));
        assert.equal(times.filter((time) => time <= lateMs).length, 10);
        const gaps = times.slice(11).map((time, at) => time - times[10 + at]!);
        assert.ok(Math.min(...gaps) >= 50, `gaps of ${gaps.join(", ")} ms`);
      });

      it("count only the first report to their permit", async (t) => {
        const { take, grantsOf } = begin(t, { initialLimit: 4, maxWaitMs: 0 });
        const answered = await take();
        answered.observe({ remaining: "3" });
        answered.observe({ remaining: "0" });
        answered.rejected({ reset: "3600" });
        assert.equal((await grantsOf(4)).length, 3);
      });
    });

    describe("the reserve", () => {
      it("is available to calls that move money, but not to reads", async (t) => {
        const { grantsOf } = begin(t, { initialLimit: 4, reserve: 0.5, maxWaitMs: 0 });
        assert.equal((await grantsOf(4, "read")).length, 2);
        assert.equal((await grantsOf(2, "money")).length, 2);
      });

      for (const [limit, reserve] of [
        [1, 0.2],
        [1, 1],
        [2, 0.9],
        [10, 1],
      ] as const) {
        it(`of ${reserve} lets reads through with a limit of ${limit}`, async (t) => {
          const { take } = begin(t, { initialLimit: limit, reserve });
          await take();
          await take();
        });
      }
    });

    describe("a waiting call", () => {
      it("is served in order, money before reads", async (t) => {
        const { clock, ask, take } = begin(t);
        (await take()).rejected({ reset: "1" });
        const served: string[] = [];
        const calls = ["read 1", "read 2", "money 1", "read 3", "money 2"].map(async (call) => {
          await ask({ priority: call.split(" ")[0] as Priority });
          served.push(call);
        });
        await clock.runUntil(Promise.all(calls));
        assert.deepEqual(served, ["money 1", "money 2", "read 1", "read 2", "read 3"]);
      });

      it("is refused at once if it would have to wait longer than maxWaitMs", async (t) => {
        const { clock, ask, take, refusal } = begin(t, { maxWaitMs: 5_000 });
        (await take()).rejected({ reset: "3600" });
        const { retryAfterMs } = await refusal(ask(), "RESOURCE_EXHAUSTED");
        assert.ok(retryAfterMs! > 3_590_000 && retryAfterMs! <= 3_601_000, `${retryAfterMs} ms`);
        assertAt(clock.now(), 0);
      });

      it("is refused at once if the caller's deadline would come first", async (t) => {
        const { clock, ask, take, refusal } = begin(t);
        (await take()).rejected({ reset: "8" });
        const waiting = ask({ deadlineMs: clock.epoch() + 4_000 });
        const { retryAfterMs } = await refusal(waiting, "RESOURCE_EXHAUSTED");
        assert.ok(retryAfterMs! > 7_900, `${retryAfterMs} ms`);
        assertAt(clock.now(), 0);
      });

      it("is refused with DEADLINE_EXCEEDED if its deadline is in the past", async (t) => {
        const { clock, ask, refusal } = begin(t);
        await refusal(ask({ deadlineMs: clock.epoch() - 1 }), "DEADLINE_EXCEEDED");
      });

      it("gets nothing once its deadline has passed", async (t) => {
        const { clock, ask, take } = begin(t, { initialLimit: 1 });
        await take();
        const late = assert.rejects(ask({ deadlineMs: clock.epoch() + 1_100 }));
        const overtaking = ask({ priority: "money" });
        await clock.runUntil(Promise.all([late, overtaking]));
        assert.ok(clock.now() <= 1_100 + lateMs, `refused at ${clock.now()} ms`);
      });

      it("is refused when the queue already takes maxWaitMs", async (t) => {
        const { grantsOf } = begin(t, { maxWaitMs: 2_000 });
        const served = (await grantsOf(500)).length;
        assert.ok(served >= 19 && served <= 21, `${served} served`);
      });

      it("is served sooner when the limit is raised", async (t) => {
        const { clock, ask, take } = begin(t, { initialLimit: 1, maxWaitMs: 60_000 });
        const permit = await take();
        const waiting = Array.from({ length: 20 }, () => ask());
        permit.observe({ limit: "20", remaining: "19" });
        await clock.runUntil(Promise.all(waiting));
        assert.ok(clock.now() <= 2_200 + lateMs, `all are served at ${clock.now()} ms`);
      });

      it("ends when its signal aborts, with the reason as error", async (t) => {
        const { ask, take, refusal } = begin(t);
        (await take()).rejected({ reset: "8" });
        const reasons: [unknown, ErrorCode][] = [
          [undefined, "CANCELLED"],
          [new DOMException("too late", "TimeoutError"), "DEADLINE_EXCEEDED"],
          [new GatewayError("UNAVAILABLE", "going away"), "UNAVAILABLE"],
        ];
        for (const [reason, code] of reasons) {
          const caller = new AbortController();
          const waiting = ask({ signal: caller.signal });
          await Promise.resolve();
          caller.abort(reason);
          await refusal(waiting, code);
          await refusal(ask({ signal: caller.signal }), code);
          assert.equal(getEventListeners(caller.signal, "abort").length, 0);
        }
      });

      it("does not hold up later calls once it was aborted", async (t) => {
        const { clock, ask, take, timeOf, refusal } = begin(t, { initialLimit: 1 });
        await take();
        const caller = new AbortController();
        const first = ask({ signal: caller.signal });
        const second = timeOf(ask());
        caller.abort();
        await refusal(first, "CANCELLED");
        assertAt(await clock.runUntil(second), 1_050);
      });

      it("leaves no listener on the signal once served", async (t) => {
        const { clock, ask } = begin(t, { initialLimit: 2 });
        const { signal } = new AbortController();
        await clock.runUntil(Promise.all(Array.from({ length: 4 }, () => ask({ signal }))));
        assert.equal(getEventListeners(signal, "abort").length, 0);
      });

      it("fails with UNAVAILABLE when the bucket closes, and so do later calls", async (t) => {
        const { bucket, ask, take } = begin(t);
        (await take()).rejected({ reset: "8" });
        const { signal } = new AbortController();
        const waiting = [ask({ signal }), ask({ signal, priority: "money" })];
        const details = { reason: "SHUTTING_DOWN", retryAfterMs: 1_000 };
        const closed = { code: "UNAVAILABLE", details };
        const refused = waiting.map((call) => assert.rejects(call, closed));
        await settled();
        bucket.close();
        await Promise.all(refused);
        await assert.rejects(ask(), closed);
        assert.equal(getEventListeners(signal, "abort").length, 0);
      });
    });

    describe("an answer", () => {
      it("sets the limit, up and down", async (t) => {
        const { bucket, take } = begin(t);
        assert.equal(bucket.status().limit, 10);
        for (const limit of [50, 20]) {
          (await take()).observe({ limit: String(limit) });
          await take();
          assert.equal(bucket.status().limit, limit);
        }
      });

      it("with a higher limit adds no tokens by itself", async (t) => {
        const { take, grantsOf } = begin(t, { initialLimit: 2, maxWaitMs: 0 });
        const [permit] = [await take(), await take()];
        permit.observe({ limit: "5", remaining: "4" });
        assert.equal((await grantsOf(10)).length, 0);
      });

      it("with a lower limit counts earlier calls against it", async (t) => {
        const { clock, ask, take, timeOf } = begin(t, { initialLimit: 50 });
        for (let calls = 0; calls < 40; calls++) {
          await clock.run(20 * calls - clock.now());
          await take();
        }
        await clock.run(800 - clock.now());
        (await take()).observe({ limit: "20" });
        // The 20th latest of them was sent at 420 ms: a window later fewer than 20 are out.
        assertAt(await clock.runUntil(timeOf(ask())), 420 + 1_050);
      });

      for (const [what, remaining, left] of [
        ["less remaining than expected takes tokens off", ["2", "1"], 1],
        ["more remaining than expected adds no tokens", ["1000", "1000"], 8],
        ["a remaining that only counts the calls before it takes no tokens off", ["9", "8"], 8],
        ["less remaining takes off what was sent since, too", ["5", undefined], 4],
        ["the shortage of an earlier one takes it off only once", ["5", "4"], 4],
      ] as const) {
        it(`with ${what}`, async (t) => {
          const { clock, take, grantsOf } = begin(t, { maxWaitMs: 0 });
          for (const [at, permit] of [await take(), await take()].entries()) {
            permit.observe({ remaining: remaining[at] });
            // Long enough for a report to a store.
            await clock.run(100);
          }
          assert.equal((await grantsOf(20)).length, left);
        });
      }

      it("that is older than one already seen changes nothing", async (t) => {
        const { bucket, take, grantsOf } = begin(t, { maxWaitMs: 0 });
        const [older, newer] = [await take(), await take()];
        newer.observe({ limit: "20", remaining: "18" });
        older.observe({ limit: "3", remaining: "0" });
        assert.equal((await grantsOf(5)).length, 5);
        assert.equal(bucket.status().limit, 20);
      });

      const nonsense = [
        ...[undefined, "", " ", "-1", "+5", "2.5", "1e3", "0x10", "NaN", "Infinity", "5, 5"],
        ...["five", "1000001", "99999999999999999999"],
      ];
      it("with a limit or remaining that makes no sense changes nothing", async (t) => {
        const { bucket, take, grantsOf } = begin(t, { initialLimit: 100, maxWaitMs: 0 });
        for (const text of nonsense) {
          (await take()).observe({ limit: text, remaining: text, reset: text });
        }
        (await take()).observe({ limit: "0" });
        await take();
        assert.equal(bucket.status().limit, 100);
        assert.equal((await grantsOf(90)).length, 100 - nonsense.length - 2);
      });
    });

    describe("a rejection", () => {
      for (const [reset, heldMs] of [
        ["1", 1_000],
        [undefined, 1_000],
        ["", 1_000],
        ["-5", 1_000],
        ["soon", 1_000],
        ["1700000000", 1_000],
        ["3", 3_000],
      ] as const) {
        it(`with Reset ${JSON.stringify(reset)} holds all calls back for ${heldMs} ms`, async (t) => {
          const { clock, ask, take, timeOf } = begin(t);
          const permit = await take();
          const rejectedAt = clock.now();
          permit.rejected({ limit: "10", reset });
          const money = timeOf(ask({ priority: "money" }));
          assertAt(await clock.runUntil(money), rejectedAt + heldMs);
        });
      }

      it("is not ended by a shorter one that comes later", async (t) => {
        const { clock, ask, take, timeOf } = begin(t);
        const [first, second] = [await take(), await take()];
        const rejectedAt = clock.now();
        first.rejected({ reset: "3" });
        second.rejected({ reset: "1" });
        const money = timeOf(ask({ priority: "money" }));
        assertAt(await clock.runUntil(money), rejectedAt + 3_000);
      });

      it("refuses a waiting call that it makes too late when that has waited for maxWaitMs", async (t) => {
        const { clock, ask, take, refusal } = begin(t, { maxWaitMs: 3_000 });
        const [first, second] = [await take(), await take()];
        first.rejected({ reset: "2" });
        const waiting = ask();
        await clock.run(5);
        second.rejected({ reset: "25" });
        const { retryAfterMs } = await refusal(waiting, "RESOURCE_EXHAUSTED");
        assert.ok(clock.now() >= 3_000 && clock.now() <= 3_100, `refused at ${clock.now()} ms`);
        assert.ok(retryAfterMs! > 21_900 && retryAfterMs! <= 22_100, `${retryAfterMs} ms`);
      });

      /** How long a token stays out now; the bucket has one, and is full. */
      async function windowMs({ clock, ask, take, timeOf }: ReturnType<typeof begin>) {
        await take();
        const takenAt = clock.now();
        return (await clock.runUntil(timeOf(ask({ priority: "money" })))) - takenAt;
      }

      it("keeps tokens out longer, each further one more so, and no longer after some time", async (t) => {
        const begun = begin(t, { initialLimit: 1 });
        const { clock, take } = begun;
        assertAt(await windowMs(begun), 1_050);
        for (const longerMs of [50, 100, 200]) {
          await clock.run(2_000);
          (await take()).rejected({ reset: "1" });
          await clock.run(2_000);
          const learnedMs = (await windowMs(begun)) - 1_050;
          // What was learned halves in 30 s.
          assert.ok(learnedMs > 0.7 * longerMs && learnedMs < longerMs + lateMs, `${learnedMs} ms`);
        }
        await clock.run(600_000);
        assertAt(await windowMs(begun), 1_050);
      });

      it("of calls that were in flight together is one, and one that names a lower limit none", async (t) => {
        for (const [limit, windowMs] of [
          [undefined, 1_095],
          ["3", 1_050],
        ] as const) {
          const { clock, ask, take, timeOf } = begin(t, { initialLimit: 4 });
          const all = [await take(), await take(), await take(), await take()];
          for (const permit of all) permit.rejected({ limit, reset: "1" });
          assertAt(await clock.runUntil(timeOf(ask())), windowMs);
        }
      });
    });

    describe("the status", () => {
      it("has the limit, the whole tokens left and the whole seconds until full", async (t) => {
        const { clock, bucket, take } = begin(t, { reserve: 0.2 });
        for (let taken = 0; taken < 4; taken++) await take();
        const status = (remaining: number, remainingForReads: number, resetSeconds: number) => ({
          ...{ limit: 10, remaining, remainingForReads, resetSeconds },
        });
        assert.deepEqual(bucket.status(), status(6, 4, 2));
        (await take()).rejected({ reset: "7" });
        assert.deepEqual(bucket.status(), status(0, 0, 7));
        await clock.run(8_000);
        assert.deepEqual(bucket.status(), status(10, 8, 0));
      });

      it("never has a negative number of tokens", async (t) => {
        const { bucket, take, grantsOf } = begin(t, { reserve: 0.3 });
        const permits = await grantsOf(10, "money");
        permits.at(-1)!.observe({ limit: "1", remaining: "0" });
        await take({ priority: "money" });
        const { remaining, remainingForReads } = bucket.status();
        assert.ok(remaining >= 0 && remaining <= 1, `${remaining}`);
        assert.ok(remainingForReads >= 0, `${remainingForReads}`);
      });
    });
  });
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Permit, Priority, TakeOptions, TokenBucket } from "../../src/ratelimit/bucket.ts";
import { createLocalBucket, type LocalBucketOptions } from "../../src/ratelimit/queued-bucket.ts";
import { reportTo } from "../../src/report.ts";
import { testTokenBucket } from "../contracts/token-bucket.ts";
import { settled, VirtualClock } from "./virtual-clock.ts";

testTokenBucket("the local bucket", createLocalBucket);

describe("the local bucket", () => {
  it("serves waiting calls evenly after a burst", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 10, maxWaitMs: 5_000 });
    const times: number[] = [];
    for (let call = 0; call < 25; call++) void take(bucket).then(() => times.push(clock.now()));
    await clock.run(5_000);
    assert.equal(times.length, 25);
    assert.equal(times.filter((time) => time === 0).length, 10);
    const gaps = times.slice(11).map((time, at) => time - times[10 + at]!);
    assert.ok(Math.min(...gaps) >= 50, `gaps of ${gaps.join(", ")} ms`);
  });

  it("keeps the reserve from a burst of reads until tokens come back", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 10, reserve: 0.3, maxWaitMs: 5_000 });
    for (let call = 0; call < 30; call++) void take(bucket).catch(() => {});
    await clock.run(700);
    const { remaining, remainingForReads } = bucket.status();
    assert.deepEqual([remaining, remainingForReads], [3, 0]);
    const money = Array.from({ length: 3 }, () => take(bucket, { priority: "money" }));
    await settled();
    assert.equal(bucket.status().remaining, 0);
    await Promise.all(money);
    await bucket.close();
  });

  it("keeps one timer however many calls wait, and none when no call waits", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 10, maxWaitMs: 60_000 });
    const callers = Array.from({ length: 300 }, () => new AbortController());
    let left = 0;
    for (const { signal } of callers) void take(bucket, { signal }).catch(() => left++);
    await settled();
    assert.equal(clock.pendingTimers, 1);
    for (const caller of callers) caller.abort();
    await settled();
    assert.equal(left, 290);
    assert.equal(clock.pendingTimers, 0);
  });

  it("refuses reads early when money overtakes them for too long", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 10, maxWaitMs: 2_000 });
    for (let call = 0; call < 10; call++) await take(bucket);
    const read = outcome(take(bucket), clock);
    const money = Array.from({ length: 30 }, () =>
      outcome(take(bucket, { priority: "money" }), clock),
    );
    await clock.run(5_000);
    const refused = await read;
    assert.equal(refused.code, "RESOURCE_EXHAUSTED");
    assert.ok(refused.at <= 100, `refused at ${refused.at} ms`);
    const served = (await Promise.all(money)).filter(({ code }) => code === undefined);
    assert.ok(served.length >= 9, `${served.length} served`);
  });

  it("grants nothing to a waiter whose deadline has passed", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 1, maxWaitMs: 10_000 });
    await take(bucket);
    const late = outcome(take(bucket, { deadlineMs: 1_100 }), clock);
    void take(bucket, { priority: "money" });
    await clock.run(5_000);
    assert.notEqual((await late).code, undefined);
    assert.ok((await late).at <= 1_100);
  });

  it("serves waiting calls sooner when the limit is raised", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 1, maxWaitMs: 60_000 });
    const permit = await take(bucket);
    const waiting = Array.from({ length: 20 }, () => outcome(take(bucket), clock));
    permit.observe({ limit: "20", remaining: "19" });
    await clock.run(3_000);
    for (const { at } of await Promise.all(waiting)) assert.ok(at <= 2_200, `served at ${at} ms`);
  });

  it("refuses waiting calls at once when a rejection makes them too late", async () => {
    const { bucket, clock } = virtualBucket({ maxWaitMs: 5_000 });
    const [first, second] = [await take(bucket), await take(bucket)];
    first.rejected({ reset: "2" });
    const waiting = outcome(take(bucket), clock);
    await clock.run(5);
    second.rejected({ reset: "9" });
    assert.deepEqual(await waiting, { code: "RESOURCE_EXHAUSTED", at: 5 });
  });

  it("soon refuses waiting calls when a lower limit makes them too late", async () => {
    const { bucket, clock } = virtualBucket({ initialLimit: 20, maxWaitMs: 2_000 });
    const permits = await Promise.all(Array.from({ length: 20 }, () => take(bucket)));
    const waiting = Array.from({ length: 15 }, () => outcome(take(bucket), clock));
    permits[18]!.observe({ limit: "19" });
    await clock.run(5);
    permits[19]!.observe({ limit: "1" });
    await clock.run(4_000);
    const ended = await Promise.all(waiting);
    const refused = ended.filter(({ code }) => code === "RESOURCE_EXHAUSTED");
    assert.ok(refused.length >= 14, `${refused.length} refused`);
    for (const { at } of refused) assert.ok(at <= 50, `refused at ${at} ms`);
  });

  it("keeps its rate when timers are late", async () => {
    const clock = new VirtualClock();
    const late = {
      now: () => clock.now(),
      epoch: () => clock.epoch(),
      after: (ms: number, run: () => void) => clock.after(ms + 5, run),
    };
    const { bucket } = virtualBucket({ initialLimit: 100, maxWaitMs: 20_000, clock: late });
    let served = 0;
    for (let call = 0; call < 1_500; call++) void take(bucket).then(() => served++);
    await clock.run(10_000);
    assert.ok(served >= 900, `${served} served`);
  });

  it("reports waits, refusals and rejections", async () => {
    const told: string[] = [];
    const { bucket, clock } = virtualBucket({
      initialLimit: 1,
      maxWaitMs: 5_000,
      account: "shop",
      report: reportTo({
        tokenAsked: ({ account, priority }) => void told.push(`${account}: ${priority} waits`),
        tokenGiven({ account, priority, waitedMs, refused = "served" }) {
          assert.ok(waitedMs >= 0);
          told.push(`${account}: ${priority} ${refused}`);
        },
        tokenRejected: ({ account }) => void told.push(`${account}: rejected`),
      }),
    });
    const gone = new AbortController();
    const { signal } = gone;
    (await take(bucket, { priority: "money", signal })).release();
    (await take(bucket)).rejected({ reset: "2" });
    const waiting = take(bucket, { priority: "money", signal });
    gone.abort();
    await assert.rejects(waiting);
    await assert.rejects(take(bucket, { deadlineMs: clock.epoch() + 100 }));
    assert.deepEqual(told, [
      ...["shop: money waits", "shop: money served", "shop: read waits", "shop: read served"],
      ...["shop: rejected", "shop: money waits", "shop: money CANCELLED"],
      ...["shop: read waits", "shop: read RESOURCE_EXHAUSTED"],
    ]);
  });

  it("reports its status while it is paused", async () => {
    const { bucket, clock } = virtualBucket({ reserve: 0.2 });
    (await take(bucket)).rejected({ reset: "7" });
    const status = (remaining: number, remainingForReads: number, resetSeconds: number) => ({
      ...{ limit: 10, remaining, remainingForReads, resetSeconds },
    });
    assert.deepEqual(bucket.status(), status(0, 0, 7));
    await clock.run(7_000);
    assert.deepEqual(bucket.status(), status(10, 8, 0));
  });
});

function virtualBucket(options: Partial<LocalBucketOptions>) {
  const clock = new VirtualClock();
  const bucket = createLocalBucket({
    initialLimit: 10,
    reserve: 0,
    maxWaitMs: 1_000,
    clock,
    ...options,
  });
  return { bucket, clock };
}

function take(bucket: TokenBucket, options: Partial<TakeOptions> = {}): Promise<Permit> {
  const priority: Priority = "read";
  return bucket.take({ priority, signal: new AbortController().signal, ...options });
}

/** How a take ended and when; `code` is undefined if it was granted. */
async function outcome(call: Promise<unknown>, clock: VirtualClock) {
  const code = await call.then(
    () => undefined,
    (error: { code: string }) => error.code,
  );
  return { code, at: clock.now() };
}

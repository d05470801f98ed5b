import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { TakeOptions } from "../../src/ratelimit/bucket.ts";
import { QueuedBucket, type TokenBucket } from "../../src/ratelimit/queued-bucket.ts";
import { reportTo } from "../../src/report.ts";
import { testTokenBucket } from "../contracts/token-bucket.ts";
import { settled, VirtualClock } from "./virtual-clock.ts";

testTokenBucket("the local bucket", (clock, options) => new QueuedBucket({ ...options, clock }));

describe("the local bucket", () => {
  const take = (bucket: TokenBucket, options: Partial<TakeOptions> = {}) =>
    bucket.take({ priority: "read", signal: new AbortController().signal, ...options });

  it("keeps the reserve from a burst of reads until tokens come back", async () => {
    const clock = new VirtualClock();
    const bucket = new QueuedBucket({ initialLimit: 10, reserve: 0.3, maxWaitMs: 5_000, clock });
    for (let call = 0; call < 30; call++) void take(bucket).catch(() => {});
    await clock.run(700);
    const { remaining, remainingForReads } = bucket.status();
    assert.deepEqual([remaining, remainingForReads], [3, 0]);
    const money = Array.from({ length: 3 }, () => take(bucket, { priority: "money" }));
    await settled();
    assert.equal(bucket.status().remaining, 0);
    await Promise.all(money);
    bucket.close();
  });

  it("keeps no timer when no call waits", async () => {
    const clock = new VirtualClock();
    const bucket = new QueuedBucket({ initialLimit: 10, reserve: 0, maxWaitMs: 60_000, clock });
    const callers = Array.from({ length: 300 }, () => new AbortController());
    let left = 0;
    for (const { signal } of callers) void take(bucket, { signal }).catch(() => left++);
    await settled();
    for (const caller of callers) caller.abort();
    await settled();
    assert.equal(left, 290);
    await clock.run(2_000);
    assert.equal(clock.pendingTimers, 0);
  });

  it("ends a call at its deadline, also by a timer that is a little early", async () => {
    const time = new VirtualClock();
    const clock = {
      now: () => time.now(),
      epoch: () => time.epoch(),
      after: (ms: number, run: () => void) => time.after(ms - 0.5, run),
    };
    const bucket = new QueuedBucket({ initialLimit: 1, reserve: 0, maxWaitMs: 20_000, clock });
    await take(bucket);
    const late = take(bucket, { deadlineMs: 1_100 });
    void take(bucket, { priority: "money" });
    const refused = assert.rejects(late, { code: "DEADLINE_EXCEEDED" });
    await time.run(1_100);
    await refused;
    bucket.close();
  });

  it("keeps its rate when timers are late", async () => {
    const time = new VirtualClock();
    const clock = {
      now: () => time.now(),
      epoch: () => time.epoch(),
      after: (ms: number, run: () => void) => time.after(ms + 5, run),
    };
    const bucket = new QueuedBucket({ initialLimit: 100, reserve: 0, maxWaitMs: 20_000, clock });
    let served = 0;
    for (let call = 0; call < 1_500; call++) void take(bucket).then(() => served++);
    await time.run(10_000);
    assert.ok(served >= 900, `${served} served`);
  });

  it("reports waits, refusals and rejections, and says how many calls wait", async () => {
    const told: string[] = [];
    const clock = new VirtualClock();
    const bucket = new QueuedBucket({
      ...{ initialLimit: 2, reserve: 0, maxWaitMs: 5_000, clock, account: "shop" },
      report: reportTo({
        tokenGiven({ account, priority, waitedMs, refused = "served" }) {
          assert.ok(waitedMs >= 0);
          told.push(`${account}: ${priority} ${refused}`);
        },
        tokenRejected: ({ account }) => void told.push(`${account}: rejected`),
      }),
    });
    const gone = new AbortController();
    const { signal } = gone;
    await take(bucket, { priority: "money", signal });
    (await take(bucket)).rejected({ reset: "2" });
    const waiting = take(bucket, { priority: "money", signal });
    assert.deepEqual(bucket.waiting, { money: 1, read: 0 });
    gone.abort();
    await assert.rejects(waiting);
    assert.deepEqual(bucket.waiting, { money: 0, read: 0 });
    await assert.rejects(take(bucket, { deadlineMs: clock.epoch() + 100 }));
    assert.deepEqual(told, [
      ...["shop: money served", "shop: read served", "shop: rejected"],
      ...["shop: money CANCELLED", "shop: read RESOURCE_EXHAUSTED"],
    ]);
  });
});

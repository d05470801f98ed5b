import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import {
  type LocalBucketOptions,
  QueuedBucket,
  type TokenBucket,
} from "../../src/ratelimit/queued-bucket.ts";
import { accountKeys } from "../../src/redis/keys.ts";
import { ofSuite } from "../of-suite.ts";
import { overridden } from "../overridden.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { connected } from "../redis/suite.ts";
import { figuresOf, type LoadOptions, longestMoneyWaitMs, mixedLoad, runLoad } from "./load-rig.ts";
import {
  fixedWindowUpstream,
  slidingWindowUpstream,
  tokenBucketUpstream,
} from "./modelled-upstream.ts";
import { Link, redisOn } from "./redis/virtual-redis.ts";
import { VirtualClock } from "./virtual-clock.ts";

const models = {
  "a token bucket": tokenBucketUpstream,
  "a fixed window": fixedWindowUpstream,
  "a sliding window": slidingWindowUpstream,
};
const limit = 50;

type BucketOptions = Required<Pick<LocalBucketOptions, "clock">> & LocalBucketOptions;

interface Given extends Partial<LoadOptions> {
  readonly model?: typeof slidingWindowUpstream;
  readonly moneyShare?: number;
  readonly reserve?: number;
  readonly bucketsOf: (options: BucketOptions, clock: VirtualClock) => TokenBucket[];
}

/** A load of five times the limit. */
async function load({ bucketsOf, model, moneyShare, reserve = 0.2, ...given }: Given) {
  const clock = new VirtualClock();
  const options = { initialLimit: limit, reserve, maxWaitMs: 1_500, clock };
  const upstream = (model ?? slidingWindowUpstream)(limit);
  const callers = mixedLoad(limit, moneyShare);
  const buckets = bucketsOf(options, clock);
  return figuresOf(await runLoad({ clock, upstream, callers, buckets, seconds: 20, ...given }));
}

type Figures = Awaited<ReturnType<typeof load>>;

const alone = (options: BucketOptions) => [new QueuedBucket(options)];

/** Half a second off a whole second, so that the drop falls into the middle of a fixed window. */
const dropping: LoadOptions["script"] = async ({ pause, mark, upstream }) => {
  await pause(4_500);
  mark("drop");
  upstream.limit = 20;
};

function assertGoals({ avoidable, sent, used }: Figures): void {
  assert.ok(avoidable <= sent / 1_000, `${avoidable} of ${sent} rejected`);
  assert.ok(used >= 0.9, `${used} of the budget used`);
}

function assertMoneyGoesFirst({ refusedMoney, longestMoneyWaitMs }: Figures): void {
  assert.equal(refusedMoney, 0);
  assert.ok(longestMoneyWaitMs <= 300, `money waited ${longestMoneyWaitMs} ms`);
}

for (const [name, model] of Object.entries(models)) {
  describe(`against ${name} at 5 times its limit, the bucket`, () => {
    const simulate = (about: Partial<Given> = {}) =>
      load({ model, jitterMs: 40, bucketsOf: alone, ...about });
    const seeds = [1, 2];

    it("is hardly ever refused, uses the budget and lets money go first", async () => {
      const figures = await simulate();
      assertGoals(figures);
      assertMoneyGoesFirst(figures);
    });

    it("uses the budget when money alone exceeds it, and when there is nothing but reads", async () => {
      assertGoals(await simulate({ moneyShare: 0.3, seed: 2 }));
      assertGoals(await simulate({ moneyShare: 0, reserve: 0.5 }));
    });

    it("follows a limit that drops midway", async () => {
      for (const seed of seeds) {
        assertGoals(await simulate({ moneyShare: 0.3, script: dropping, seed }));
      }
    });

    it("learns from rejections when latency varies more than its margin", async () => {
      const { rejected, sent } = await simulate({ moneyShare: 0.3, jitterMs: 200 });
      assert.ok(rejected <= 0.01 * sent, `${rejected} rejected`);
    });

    it("gives way to another client of the same account", async () => {
      // The bucket does not see that client, which sends 20 requests a second.
      const script: LoadOptions["script"] = async ({ pause, upstream, now }) => {
        while (now() < 59_000) {
          upstream.request(now());
          await pause(50);
        }
      };
      for (const seed of seeds) {
        const { rejected, sent } = await simulate({ moneyShare: 0.3, script, seconds: 60, seed });
        assert.ok(rejected <= 0.012 * sent, `${rejected} rejected`);
      }
    });

    it("misses the goals with the bucket ignored (control)", async () => {
      const permit = { observe() {}, rejected() {} };
      const bucketsOf = (options: BucketOptions) =>
        alone(options).map((bucket) => overridden(bucket, { take: async () => permit }));
      const figures = await simulate({ bucketsOf });
      assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
    });

    it("misses the goals after a drop with the answers ignored (control)", async () => {
      const figures = await simulate({ script: dropping, ignoreAnswers: true });
      assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
    });
  });
}

describe("replicas that share a budget through Redis, at 5 times the limit,", {
  skip: withoutRedis,
}, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));
  /** Of three replicas, of which the last one has this link. */
  const shared =
    (link = new Link()) =>
    (options: BucketOptions, clock: VirtualClock) => {
      const keys = accountKeys("test", randomUUID());
      return [new Link(), new Link(), link].map((link, nth) => {
        const client = redisOn(clock, redis.client, 1, link);
        return new QueuedBucket({ ...options, client, keys, replicaId: `replica ${nth}` });
      });
    };
  const simulate = (about: Partial<Given> = {}) =>
    load({ bucketsOf: shared(), seconds: 8, ...about });

  for (const [name, model] of Object.entries(models)) {
    it(`are hardly ever refused by ${name}, use the budget and let money go first`, async () => {
      const figures = await simulate({ model });
      assertGoals(figures);
      assertMoneyGoesFirst(figures);
    });
  }

  it("get even shares of the budget", async () => {
    const { calls } = (await simulate({ moneyShare: 0 })).result;
    const sent = [0, 1, 2].map(
      (one) => calls.filter(({ replica, sentAt }) => replica === one && sentAt).length,
    );
    assert.ok(Math.max(...sent) <= 1.25 * Math.min(...sent), `${sent} sent`);
  });

  it("follow a limit that drops midway", async () => {
    const { avoidable, sent, result } = await simulate({ moneyShare: 0.03, script: dropping });
    assert.equal(avoidable, 0, `${avoidable} of ${sent} rejected`);
    // Calls in flight at the drop are rejected, and then no replica may send until Reset.
    const waitMs = longestMoneyWaitMs(result, result.marks.get("drop")! + 2_000);
    assert.ok(waitMs < 1_000, `money waited ${waitMs} ms`);
  });

  it("go on when one of them is killed", async () => {
    const link = new Link();
    const figures = await simulate({
      bucketsOf: shared(link),
      async script({ pause, kill }) {
        await pause(4_000);
        // It does not announce its end.
        link.cut();
        kill(2);
      },
    });
    assertGoals(figures);
    assertMoneyGoesFirst(figures);
  });

  it("overrun the limit when each has a budget of its own (control)", async () => {
    const bucketsOf = (options: BucketOptions) => [1, 2, 3].flatMap(() => alone(options));
    const figures = await simulate({ bucketsOf });
    assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
  });

  it("overrun a limit that drops when they ignore the answers (control)", async () => {
    const figures = await simulate({ moneyShare: 0.03, script: dropping, ignoreAnswers: true });
    assert.notEqual(figures.avoidable, 0);
  });
});

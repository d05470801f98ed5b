import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ofSuite } from "../of-suite.ts";
import { overridden } from "../overridden.ts";
import { seeded } from "../random.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import {
  fixedWindowUpstream,
  slidingWindowUpstream,
  tokenBucketUpstream,
} from "./modelled-upstream.ts";
import { redisOn } from "./redis/virtual-redis.ts";
import {
  figuresOf,
  type LoadOptions,
  localBucket,
  longestMoneyWaitMs,
  type Replica,
  runLoad,
} from "./shared-load.ts";
import { VirtualClock } from "./virtual-clock.ts";

const models = {
  "a token bucket": tokenBucketUpstream,
  "a fixed window": fixedWindowUpstream,
  "a sliding window": slidingWindowUpstream,
};

/** A load of five times the limit, on virtual time: a busy machine does not matter. */
async function load(about: Partial<LoadOptions> = {}, seed = 1) {
  const clock = new VirtualClock();
  const result = await runLoad({
    ...{ limit: 50, seconds: 20, clock, random: seeded(seed) },
    tamper: (client) => redisOn(clock, client, 1),
    ...about,
  });
  return { ...figuresOf(result), result };
}

type Figures = Awaited<ReturnType<typeof load>>;

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
    const simulate = (about: Partial<LoadOptions> = {}, seed?: number) =>
      load({ model, replicas: 1, jitterMs: 40, bucket: localBucket, ...about }, seed);
    const seeds = [1, 2];

    it("is hardly ever refused, uses the budget and lets money go first", async () => {
      const figures = await simulate();
      assertGoals(figures);
      assertMoneyGoesFirst(figures);
    });

    it("uses the budget when money alone exceeds it, and when there is nothing but reads", async () => {
      assertGoals(await simulate({ moneyShare: 0.3 }, 2));
      assertGoals(await simulate({ moneyShare: 0, reserve: 0.5 }));
    });

    it("follows a limit that drops midway", async () => {
      for (const seed of seeds) {
        assertGoals(await simulate({ moneyShare: 0.3, script: dropping }, seed));
      }
    });

    it("learns from rejections when latency varies more than its margin", async () => {
      const { rejected, sent } = await simulate({ moneyShare: 0.3, jitterMs: 200 });
      assert.ok(rejected <= 0.01 * sent, `${rejected} rejected`);
    });

    it("gives way to another client of the same account", async () => {
      // The bucket does not see that client, which sends 20 requests a second.
      const sharing: LoadOptions["script"] = async ({ pause, upstream, now }) => {
        while (now() < 59_000) {
          upstream.request(now());
          await pause(50);
        }
      };
      const others = { moneyShare: 0.3, script: sharing, seconds: 60 };
      for (const seed of seeds) {
        const { rejected, sent } = await simulate(others, seed);
        assert.ok(rejected <= 0.012 * sent, `${rejected} rejected`);
      }
    });

    it("misses the goals with the bucket ignored (control)", async () => {
      const permit = { observe() {}, rejected() {}, release() {} };
      const bucket = (replica: Replica) =>
        overridden(localBucket(replica), { take: async () => permit });
      const figures = await simulate({ bucket });
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
  const simulate = (about: Partial<LoadOptions> = {}) =>
    load({ redisUrl: server.url, seconds: 8, ...about });

  for (const [name, model] of Object.entries(models)) {
    it(`are hardly ever refused by ${name}, use the budget and let money go first`, async () => {
      const figures = await simulate({ model });
      assertGoals(figures);
      assertMoneyGoesFirst(figures);
    });
  }

  it("get even shares of the budget", async () => {
    const { calls } = (await simulate({ moneyShare: 0 })).result;
    const sent = [0, 1, 2].map((one) => calls.filter(({ replica }) => replica === one).length);
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
    const figures = await simulate({
      async script({ pause, killReplica }) {
        await pause(4_000);
        killReplica();
      },
    });
    assertGoals(figures);
    assertMoneyGoesFirst(figures);
  });

  it("overrun the limit when each has a budget of its own (control)", async () => {
    const figures = await simulate({ bucket: localBucket });
    assert.throws(() => assertGoals(figures), / of \d+ rejected$/);
  });

  it("overrun a limit that drops when they ignore the answers (control)", async () => {
    const figures = await simulate({ moneyShare: 0.03, script: dropping, ignoreAnswers: true });
    assert.notEqual(figures.avoidable, 0);
  });
});

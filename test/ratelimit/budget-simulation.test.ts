import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { overridden } from "../overridden.ts";
import { seeded } from "../random.ts";
import {
  fixedWindowUpstream,
  slidingWindowUpstream,
  tokenBucketUpstream,
} from "./modelled-upstream.ts";
import { figuresOf, type LoadOptions, localBucket, type Replica, runLoad } from "./shared-load.ts";
import { VirtualClock } from "./virtual-clock.ts";

const models = {
  "a token bucket": tokenBucketUpstream,
  "a fixed window": fixedWindowUpstream,
  "a sliding window": slidingWindowUpstream,
};
const seeds = [1, 2];

/** Half a second off a whole second, so that the drop falls into the middle of a fixed window. */
const dropping: LoadOptions["script"] = async ({ pause, upstream }) => {
  await pause(9_500);
  upstream.limit = 20;
};

/** Another client of the account, which the bucket does not see, sends 20 requests a second. */
const sharing: LoadOptions["script"] = async ({ pause, upstream, now }) => {
  while (now() < 59_000) {
    upstream.request(now());
    await pause(50);
  }
};

for (const [name, model] of Object.entries(models)) {
  describe(`against ${name} at 5 times its limit, the bucket`, () => {
    async function simulate(options: Partial<LoadOptions> = {}, seed = 1) {
      const result = await runLoad({
        ...{ limit: 50, seconds: 20, replicas: 1, moneyShare: 0.3, jitterMs: 40 },
        ...{ model, bucket: localBucket, clock: new VirtualClock(), random: seeded(seed) },
        ...options,
      });
      return figuresOf(result);
    }

    it("is hardly ever refused and uses the budget", async () => {
      for (const seed of seeds) assertGoals(await simulate({}, seed));
    });

    it("uses the budget when there is nothing but reads", async () => {
      assertGoals(await simulate({ moneyShare: 0, reserve: 0.5 }));
    });

    it("follows a limit that drops midway", async () => {
      for (const seed of seeds) {
        assertGoals(await simulate({ script: dropping }, seed));
      }
    });

    it("never lets money wait long behind reads", async () => {
      const figures = await simulate({ moneyShare: 0.1 });
      assert.equal(figures.refusedMoney, 0);
      assert.ok(figures.longestMoneyWaitMs <= 300, `${figures.longestMoneyWaitMs} ms`);
    });

    it("learns from rejections when latency varies more than its margin", async () => {
      const { rejected, sent } = await simulate({ jitterMs: 200 });
      assert.ok(rejected <= 0.01 * sent, `${rejected} rejected`);
    });

    it("gives way to another client of the same account", async () => {
      for (const seed of seeds) {
        const others = { script: sharing, seconds: 60 };
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

function assertGoals({ avoidable, sent, used }: ReturnType<typeof figuresOf>): void {
  assert.ok(avoidable <= sent / 1_000, `${avoidable} of ${sent} rejected`);
  assert.ok(used >= 0.9, `${used} of the budget used`);
}

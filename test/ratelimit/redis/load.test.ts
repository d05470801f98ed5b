import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { ofSuite } from "../../of-suite.ts";
import { seeded } from "../../random.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { fixedWindowUpstream, tokenBucketUpstream } from "../modelled-upstream.ts";
import {
  assertGoals,
  figuresOf,
  type LoadOptions,
  type LoadResult,
  localBucket,
  longestMoneyWaitMs,
  runLoad,
} from "../shared-load.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { redisOn } from "./virtual-redis.ts";

const LEAST_USED = 0.9;
const roundTripMs = 1;
const options = { skip: withoutRedis, timeout: 120_000 };

/** On virtual time, so a busy machine does not matter. */
describe("replicas that share a budget through Redis, at 5 times the limit,", options, () => {
  const server = ofSuite(startRedis);

  const load = async (scenario: Partial<LoadOptions>, check: (result: LoadResult) => void) => {
    const clock = new VirtualClock();
    const tamper: LoadOptions["tamper"] = (client) => redisOn(clock, client, roundTripMs);
    const virtual = { clock, tamper, random: seeded(1) };
    check(await runLoad({ redisUrl: server.url, limit: 50, seconds: 8, ...virtual, ...scenario }));
  };

  const upstreams = {
    "a sliding window": {},
    "a fixed window": { model: fixedWindowUpstream },
    "a token bucket": { model: tokenBucketUpstream },
  };
  for (const [name, scenario] of Object.entries(upstreams)) {
    it(`are hardly ever refused by ${name}, use the budget and let money go first`, () =>
      load(scenario, (result) => {
        assertGoals(figuresOf(result), LEAST_USED);
      }));
  }

  it("get even shares of the budget", () =>
    load({ moneyShare: 0 }, ({ calls }) => {
      const sent = [0, 1, 2].map((one) => calls.filter(({ replica }) => replica === one).length);
      assert.ok(Math.max(...sent) <= 1.25 * Math.min(...sent), `${sent} sent`);
    }));

  it("follow a limit that drops midway", () =>
    load(dropping, (result) => {
      const figures = figuresOf(result);
      assert.equal(figures.avoidable, 0, `${figures.avoidable} of ${figures.sent} rejected`);
      // Calls in flight at the drop are rejected, and then no replica may send until Reset.
      const waitMs = longestMoneyWaitMs(result, result.marks.get("drop")! + 2_000);
      assert.ok(waitMs < 1_000, `money waited ${waitMs} ms`);
    }));

  it("go on when one of them is killed", () =>
    load(losingOne, (result) => {
      assertGoals(figuresOf(result), LEAST_USED);
    }));

  it("overrun the limit when each has a budget of its own (control)", () =>
    load({ bucket: localBucket }, (result) => {
      assert.throws(() => assertGoals(figuresOf(result), LEAST_USED), / of \d+ rejected$/);
    }));

  it("overrun a limit that drops when they ignore the answers (control)", () =>
    load({ ...dropping, ignoreAnswers: true }, (result) => {
      assert.notEqual(figuresOf(result).avoidable, 0);
    }));
});

const dropping: Partial<LoadOptions> = {
  moneyShare: 0.03,
  async script(load) {
    await load.pause(4_000);
    load.mark("drop");
    load.upstream.limit = 20;
  },
};

const losingOne: Partial<LoadOptions> = {
  async script(load) {
    await load.pause(4_000);
    load.killReplica();
  },
};

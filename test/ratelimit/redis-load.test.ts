import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { createLocalBucket } from "../../src/ratelimit/local-bucket.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { fixedWindowUpstream, tokenBucketUpstream } from "./modelled-upstream.ts";
import {
  assertGoals,
  figuresOf,
  type LoadOptions,
  longestMoneyWaitMs,
  report,
  runLoad,
} from "./shared-load.ts";

/** Other tests may keep this machine busy. The long form asks for 0.9. */
const LEAST_USED = 0.7;

const options = { skip: withoutRedis, concurrency: true, timeout: 60_000 };

describe("replicas that share a budget through Redis, at 5 times the limit,", options, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.close());

  const load = (scenario: Partial<LoadOptions>) =>
    runLoad({ redisUrl: server.url, limit: 50, seconds: 6, ...scenario });

  const upstreams = {
    "a sliding window": {},
    "a fixed window": { model: fixedWindowUpstream },
    "a token bucket": { model: tokenBucketUpstream },
  };
  for (const [name, scenario] of Object.entries(upstreams)) {
    it(`are hardly ever refused by ${name}, use the budget and let money go first`, async () => {
      const figures = figuresOf(await load(scenario));
      report(name, figures);
      assertGoals(figures, LEAST_USED);
    });
  }

  it("get even shares of it", async () => {
    const { calls } = await load({ moneyShare: 0 });
    const sent = [0, 1, 2].map((number) => calls.filter((call) => call.replica === number).length);
    assert.ok(Math.max(...sent) <= 1.25 * Math.min(...sent), `${sent} sent`);
  });

  it("follow a limit that drops midway", async () => {
    const result = await load(dropping);
    const figures = figuresOf(result);
    report("drop to 20", figures);
    assert.equal(figures.avoidable, 0, `${figures.avoidable} of ${figures.sent} rejected`);
    // Calls on their way when it drops are refused, and then nobody may send until Reset.
    const waitMs = longestMoneyWaitMs(result, result.marks.get("drop")! + 2_000);
    assert.ok(waitMs < 1_000, `money waited ${waitMs} ms`);
  });

  it("go on when one of them is killed", async () => {
    const figures = figuresOf(await load(losingOne));
    report("one killed", figures);
    assertGoals(figures, LEAST_USED);
  });

  it("overrun it when each has it for itself (control)", async () => {
    const bucket: LoadOptions["bucket"] = ({ limit, reserve }) =>
      createLocalBucket({ initialLimit: limit, reserve, maxWaitMs: 1_500 });
    const figures = figuresOf(await load({ bucket }));
    report("each for itself", figures);
    assert.throws(() => assertGoals(figures, LEAST_USED));
  });

  it("overrun a limit that drops when they ignore the answers (control)", async () => {
    const figures = figuresOf(await load({ ...dropping, ignoreAnswers: true }));
    assert.ok(figures.avoidable > 0, `${figures.avoidable} of ${figures.sent} rejected`);
  });
});

const dropping: Partial<LoadOptions> = {
  moneyShare: 0.03,
  async script(load) {
    await delay(3_000);
    load.mark("drop");
    load.upstream.limit = 20;
  },
};

const losingOne: Partial<LoadOptions> = {
  async script(load) {
    await delay(3_000);
    load.killReplica();
  },
};

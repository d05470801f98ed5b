import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { withoutRedis } from "../redis/server.ts";
import { redisDefects } from "./defects.ts";
import type { Plan } from "./plan.ts";
import { runPlan, runSeed } from "./run.ts";
import { closeRedis } from "./stores/real-redis.ts";
import { testDefects, testKept } from "./suites.ts";

/** `npm run simulate -- --store redis` makes more of them. */
const histories = 15;

describe("on a real Redis", { skip: withoutRedis }, () => {
  after(closeRedis);

  test(`no promise is broken in ${histories} histories`, async () => {
    let [charged, failovers, shown] = [0, 0, 0];
    for (let seed = 1; seed <= histories; seed++) {
      const { plan, history, violations } = await runSeed(seed, "redis");
      const command = `npm run simulate -- --store redis --histories 1 --print --seed ${seed}`;
      assert.deepEqual(violations, [], command);
      charged += history.posts.filter((post) => post.charged).length;
      failovers += plan.steps.filter((step) => step.do === "failOver").length;
      shown += history.shown.length;
    }
    assert.ok(charged > histories / 4 && failovers > histories / 10 && shown > histories);
  });

  testKept("redis");

  test("a seed makes the same history each time", async () => {
    const isFailover = ({ plan }: { plan: Plan }) =>
      plan.steps.some((step) => step.do === "failOver");
    let failovers = 0;
    for (let seed = 1; seed <= 4; seed++) {
      const [first, again] = [await runSeed(seed, "redis"), await runSeed(seed, "redis")];
      assert.deepEqual(again.history, first.history);
      failovers += Number(isFailover(first));
    }
    assert.ok(failovers > 0);
  });

  testDefects(redisDefects, "redis", 200);

  test("the checks find what a failover loses when no gateway waits for the replica", async () => {
    const lost = new Set<string>();
    for (let seed = 1; seed <= 400 && lost.size === 0; seed++) {
      const { plan } = await runSeed(seed, "redis");
      if (!plan.replication) continue;
      const unsafe = { ...plan, replication: { lagMs: 600, waits: false } };
      for (const { check } of (await runPlan(unsafe, "redis")).violations) lost.add(check);
    }
    assert.ok(lost.size > 0);
  });
});

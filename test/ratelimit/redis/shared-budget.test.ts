import assert from "node:assert/strict";
import { test } from "node:test";
import slotOf from "cluster-key-slot";
import { SharedBudget, type TakeReply } from "../../../src/ratelimit/redis/shared-budget.ts";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { VirtualClock } from "../virtual-clock.ts";

test("in a cluster, too, a node that was promoted is told of the tokens that were used lately", async () => {
  const bucket = "test:{shop}:bucket";
  const slots: string[][] = [];
  slots[slotOf(bucket)] = ["10.0.0.1:1"];
  const asked: { spent: unknown[] }[] = [];
  const line = { granted: {}, unmet: 0, nextMs: 0, perOwn: 1 };
  const reply: TakeReply = {
    ...{ id: "state", money: line, read: line, at: 0, order: 0, out: 0, lowered: 0 },
    ...{ intervalMs: 100, limit: 10, remaining: 10, fullMs: 0, replicas: 1 },
  };
  const client = {
    ...{ isCluster: true, status: "ready", slots },
    async evalsha(_: string, __: number, ___: string, text: string) {
      asked.push(JSON.parse(text));
      return JSON.stringify(reply);
    },
  };
  const clock = new VirtualClock();
  const budget = new SharedBudget({
    ...{ client: client as unknown as RedisClient, keys: { bucket }, replicaId: "one" },
    ...{ clock, initialLimit: 10, reserve: 0, onDue() {} },
  });
  const ask = () => budget.ask({ wants: { money: {}, read: {} }, returning: false });
  await ask();
  budget.use(clock.now(), true);
  await ask();
  slots[slotOf(bucket)] = ["10.0.0.2:1"];
  await ask();
  assert.deepEqual(
    asked.map(({ spent }) => spent.length),
    [0, 0, 1],
  );
});

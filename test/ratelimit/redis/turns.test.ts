import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import type { Clock } from "../../../src/ratelimit/clock.ts";
import { QueuedBucket, type TokenBucket } from "../../../src/ratelimit/queued-bucket.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { ofSuite } from "../../of-suite.ts";
import { seeded } from "../../random.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { connected } from "../../redis/suite.ts";
import {
  type CallerLoad,
  jainOf,
  runLoad,
  type TurnsFigures,
  turnsOf,
  warmUpMs,
} from "../load-rig.ts";
import { slidingWindowUpstream } from "../modelled-upstream.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { redisOn } from "./virtual-redis.ts";

const bucketOptions = { reserve: 0.2, maxWaitMs: 1_500 };
const roundTripMs = 1;
const spaced = { spaced: true } as const;

describe("callers take turns", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  const homes = {
    "in one process": (limit: number, _: VirtualClock, clock: Clock): TokenBucket[] => [
      new QueuedBucket({ ...bucketOptions, initialLimit: limit, clock }),
    ],
    "over three replicas": (limit: number, time: VirtualClock, clock: Clock): TokenBucket[] => {
      const keys = accountKeys("test", randomUUID());
      const client = redisOn(time, redis.client, roundTripMs);
      return Array.from({ length: 3 }, (_, nth) => {
        const replica = { client, keys, replicaId: `replica ${nth}`, clock };
        return new QueuedBucket({ ...bucketOptions, ...replica, initialLimit: limit });
      });
    },
  };
  type Home = (typeof homes)["in one process"];

  async function run(
    home: Home,
    callers: readonly CallerLoad[],
    { limit = 50, timersOf = (clock: VirtualClock): Clock => clock } = {},
  ) {
    const clock = new VirtualClock();
    const seconds = warmUpMs / 1_000 + Math.min(100, Math.max(4, 500 / limit));
    const buckets = home(limit, clock, timersOf(clock));
    const upstream = slidingWindowUpstream(limit);
    return turnsOf(await runLoad({ clock, buckets, upstream, callers, seconds }), limit);
  }

  for (const [where, home] of Object.entries(homes)) {
    describe(where, () => {
      for (const limit of [5, 50, 500]) {
        it(`a caller beside a 100 times busier one waits two turns at most: limit ${limit}`, async () => {
          const figures = await run(home, hundredToOne(limit), { limit });
          assertGoals(figures);
          assertWaits(figures, "small", limit);
        });
      }

      it("no caller gets more than its share while others want theirs", async () => {
        const callers = [8, 2, 1].map((times) => ({
          caller: { name: `wants ${times}` },
          perSecond: (times * 50) / 2,
        }));
        assertGoals(await run(home, callers));
      });

      it("callers get even shares when timers are up to 40 ms late", async () => {
        const random = seeded(7);
        const lateMs = () => (random() > 0.95 ? 40 * random() : 3 * random());
        const late = (clock: VirtualClock): Clock => ({
          now: () => clock.now(),
          epoch: () => clock.epoch(),
          after: (ms, ring) => clock.after(ms + lateMs(), ring),
        });
        assertGoals(await run(home, hundredToOne(50), { timersOf: late }));
      });

      it("money calls take turns among themselves, and go before all reads", async () => {
        const callers = [
          { caller: { name: "large payer" }, perSecond: 100, priority: "money" as const },
          { caller: { name: "small payer" }, perSecond: 2, ...spaced, priority: "money" as const },
          { caller: { name: "reader" }, perSecond: 50 },
        ];
        const figures = await run(home, callers);
        assertWaits(figures, "small payer", 50);
        const reader = figures.callers.find(({ name }) => name === "reader");
        assert.equal(reader?.granted, 0, "money wants all there is");
      });

      it("all customers together take the turns of one service, in even shares", async () => {
        const service = { caller: { name: "service" }, perSecond: 100 };
        const customers = Array.from({ length: 20 }, (_, nth) => ({
          caller: { name: `customer ${nth}`, customer: `${nth}` },
          perSecond: nth === 0 ? 100 : 5,
        }));
        const { callers } = await run(home, [service, ...customers]);
        const [first, ...rest] = callers;
        const sum = rest.reduce((all, { granted }) => all + granted, 0);
        assert.ok(jainOf([first!, { offered: Infinity, granted: sum }]) >= 0.95, `${sum} granted`);
        assert.ok(jainOf(rest) >= 0.95, `${rest.map(({ granted }) => granted)}`);
      });

      it("with turns off, the caller with few calls gets next to nothing (control)", async () => {
        const asOne = hundredToOne(50).map((load) => ({
          ...load,
          caller: { name: load.caller?.name ?? "", service: "one" },
        }));
        const figures = await run(home, asOne);
        assert.throws(() => assertWaits(figures, "small", 50), /small: \d+ refused/);
        assert.throws(() => assertGoals(figures), /Jain's index/);
      });
    });
  }
});

/** Two callers; calls of the small one never wait behind each other. */
function hundredToOne(limit: number): CallerLoad[] {
  return [
    { caller: { name: "large" }, perSecond: 2.5 * limit },
    { caller: { name: "small" }, perSecond: limit / 40, ...spaced },
  ];
}

function assertGoals({ jain, used, rejected, sent }: TurnsFigures) {
  assert.ok(jain >= 0.95, `Jain's index ${jain}`);
  assert.ok(used >= 0.9, `${used} of the budget used`);
  assert.ok(rejected <= sent / 1_000, `${rejected} of ${sent} rejected`);
}

/**
 * In a turn each of the two callers gets one token, or at a high limit all tokens that come back
 * before a replica may ask again, after 5 ms.
 */
function assertWaits({ callers }: TurnsFigures, small: string, limit: number) {
  const turnMs = 2 * (Math.max(1_050 / limit, 5) + roundTripMs);
  const { p99WaitMs, refused } = callers.find(({ name }) => name === small)!;
  assert.equal(refused, 0, `${small}: ${refused} refused`);
  assert.ok(p99WaitMs <= 2 * turnMs, `${small} waited ${p99WaitMs} ms`);
}

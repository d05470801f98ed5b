import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { seeded } from "../../random.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { closing } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import {
  figuresOf,
  type Load,
  type LoadOptions,
  type LoadResult,
  report,
  runLoad,
} from "../shared-load.ts";
import { VirtualClock } from "../virtual-clock.ts";
import {
  assertBack,
  assertBudgetHolds,
  limit,
  type Outage,
  outages,
  type Suffering,
  tampering,
} from "./outages.ts";
import { Link, redisOn } from "./virtual-redis.ts";

const flushes: Outage = {
  async begin({ command }, pause) {
    for (let times = 0; times < 3; times++) {
      await command("FLUSHALL");
      await pause(100);
    }
  },
};

async function serverFor(t: TestContext, outage?: Outage): Promise<RedisServer> {
  const redis = closing(t, await startRedis(outage?.settings));
  return redis;
}

/**
 * The server on virtual time, which stops while it runs a command. Where a process would die or
 * stand still, the link to it does.
 */
function virtual(
  redis: RedisServer,
  { clock, link, pause }: { clock: VirtualClock; link: Link; pause: Load["pause"] },
  keeps: boolean,
): Suffering {
  const command: Suffering["command"] = (...args) => clock.holdFor(() => redis.command(...args));
  return {
    command,
    kill: async () => link.cut(),
    async stop() {
      link.cut();
      await pause(50);
    },
    async start() {
      if (!keeps) await command("FLUSHALL");
      link.open();
    },
    pause: () => link.hold(),
    resume: () => link.open(),
  };
}

/** Three replicas of one account at 5 times its limit suffer an outage on virtual time. */
async function suffer(
  t: TestContext,
  outage: Outage,
  tamper = (client: RedisClient) => client,
): Promise<LoadResult> {
  const redis = await serverFor(t);
  const clock = new VirtualClock();
  const link = new Link();
  const script: LoadOptions["script"] = async ({ pause, mark }) => {
    const suffering = virtual(redis, { clock, link, pause }, outage.settings !== undefined);
    await pause(2_000);
    mark("away");
    await outage.begin(suffering, pause);
    if (outage.end) {
      await pause(4_000);
      await outage.end(suffering);
    }
    mark("back");
    await pause(4_000);
  };
  return await runLoad({
    ...{ redisUrl: redis.url, limit, seconds: 0, script, clock, random: seeded(1) },
    tamper: (client) => tamper(redisOn(clock, client, 1, link)),
  });
}

describe("when Redis", { skip: withoutRedis, timeout: 120_000 }, () => {
  const { "forgets its scripts": _, ...virtualOutages } = outages;
  for (const [name, outage] of Object.entries(virtualOutages)) {
    it(`${name}, the budget holds and all replicas are back within 2 s`, async (t) => {
      const result = await suffer(t, outage);
      report(name, figuresOf(result));
      assertBudgetHolds(result);
      assertBack(result, outage, 0.85);
    });
  }

  const controls = {
    "is flushed again and again, the budget is overrun if nobody minds": {
      outage: flushes,
      tamper: tampering({ recent: false }),
    },
    "is out of memory, the budget is overrun if nobody tells what it used": {
      outage: outages["is out of memory"]!,
      tamper: tampering({ returning: false, spent: [] }),
    },
    "stands still, the budget is overrun if nobody counts the others": {
      outage: outages["stands still"]!,
      tamper: tampering({}, { replicas: 1 }),
    },
  };
  for (const [name, { outage, tamper }] of Object.entries(controls)) {
    it(`${name} (control)`, async (t) => {
      const result = await suffer(t, outage, tamper);
      report(name, figuresOf(result));
      assert.throws(() => assertBudgetHolds(result), /rejected|in a second/);
    });
  }
});

/** The figures come from virtual time. Here real servers die, and the tests wait for recovery. */
describe("when a real Redis", { skip: withoutRedis, timeout: 120_000 }, () => {
  const real = Object.entries(outages).filter(([name]) =>
    /loses everything|stands still|scripts/.test(name),
  );
  for (const [name, outage] of real) {
    it(`${name}, replicas go on without it and use it again afterwards`, async (t) => {
      const redis = await serverFor(t, outage);
      const script: LoadOptions["script"] = async (load) => {
        // How many replicas go on alone now. On a busy machine one may do so at any time.
        const alone = () =>
          load.changes.reduce((sum, { source }) => sum + (source === "local" ? 1 : -1), 0);
        await load.pause(500);
        await outage.begin(redis, load.pause);
        if (outage.noticed) await until(async () => alone() === 3);
        await outage.end?.(redis);
        await until(async () => alone() === 0);
        // More calls than were in flight.
        const before = load.sent();
        await until(async () => load.sent() > before + limit);
      };
      await runLoad({ redisUrl: redis.url, limit, seconds: 0, script, overload: 1.5 });
    });
  }
});

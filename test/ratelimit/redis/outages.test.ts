import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { seeded } from "../../random.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
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
  tampering,
} from "./outages.ts";
import { Link, redisOn } from "./virtual-redis.ts";

/** A Redis on virtual time under a load. */
interface World {
  readonly link: Link;
  readonly load: Load;
  /** Runs a command on Redis; virtual time stops until it is answered. */
  command(name: string, ...words: (string | number)[]): Promise<unknown>;
}

interface VirtualOutage {
  readonly noticed?: true;
  begin(world: World): unknown;
  end?(world: World): unknown;
}

const forgetAll = ({ command }: World) => command("FLUSHALL");

/** The outages of outages.ts; where a process dies or stops there, the link simulates it here. */
const virtualOutages: Readonly<Record<string, VirtualOutage>> = {
  "is killed and loses everything": {
    noticed: true,
    begin: ({ link }) => link.cut(),
    async end(world) {
      await forgetAll(world);
      world.link.open();
    },
  },
  "is killed and keeps everything on disk": {
    noticed: true,
    begin: ({ link }) => link.cut(),
    end: ({ link }) => link.open(),
  },
  "is restarted and loses everything": {
    async begin(world) {
      world.link.cut();
      await world.load.pause(50);
      await forgetAll(world);
      world.link.open();
    },
  },
  "stands still": {
    noticed: true,
    begin: ({ link }) => link.hold(),
    end: ({ link }) => link.open(),
  },
  "takes no writes as a replica": {
    noticed: true,
    begin: ({ command }) => command("REPLICAOF", "127.0.0.1", 1),
    end: ({ command }) => command("REPLICAOF", "NO", "ONE"),
  },
  "is out of memory": {
    noticed: true,
    begin: ({ command }) => command("CONFIG", "SET", "maxmemory", 1_000),
    end: ({ command }) => command("CONFIG", "SET", "maxmemory", 0),
  },
  "has another kind of value under the key": {
    noticed: true,
    async begin({ command }) {
      const [key] = (await command("KEYS", "*:bucket")) as string[];
      const replace = "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'not', 'ours')";
      await command("EVAL", replace, 1, key ?? assert.fail("no bucket"));
    },
    end: forgetAll,
  },
  "is flushed": { begin: forgetAll },
};

const flushes: VirtualOutage = {
  async begin(world) {
    for (let times = 0; times < 3; times++) {
      await forgetAll(world);
      await world.load.pause(100);
    }
  },
};

async function serverFor(t: TestContext, outage?: Outage): Promise<RedisServer> {
  const redis = await startRedis(outage?.settings);
  t.after(() => redis.close());
  return redis;
}

/** Three replicas of one account at 5 times its limit suffer an outage on virtual time. */
async function suffer(
  redis: RedisServer,
  outage: VirtualOutage,
  options: Partial<LoadOptions> = {},
): Promise<LoadResult> {
  const clock = new VirtualClock();
  const link = new Link();
  const command: World["command"] = (name, ...words) =>
    clock.holdFor(() => redis.command(name, ...words));
  const script: LoadOptions["script"] = async (load) => {
    const world = { link, load, command };
    await load.pause(2_000);
    load.mark("away");
    await outage.begin(world);
    if (outage.end) {
      await load.pause(4_000);
      await outage.end(world);
    }
    load.mark("back");
    await load.pause(4_000);
  };
  const { tamper = (client) => client, ...rest } = options;
  return await runLoad({
    ...{ redisUrl: redis.url, limit, seconds: 0, script, clock, random: seeded(1) },
    tamper: (client) => tamper(redisOn(clock, client, 1, link)),
    ...rest,
  });
}

describe("when Redis", { skip: withoutRedis, timeout: 120_000 }, () => {
  for (const [name, outage] of Object.entries(virtualOutages)) {
    it(`${name}, the budget holds and all replicas are back within 2 s`, async (t) => {
      const result = await suffer(await serverFor(t), outage);
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
      outage: virtualOutages["is out of memory"]!,
      tamper: tampering({ returning: false, spent: [] }),
    },
    "stands still, the budget is overrun if nobody counts the others": {
      outage: virtualOutages["stands still"]!,
      tamper: tampering({}, { replicas: 1 }),
    },
  };
  for (const [name, { outage, tamper }] of Object.entries(controls)) {
    it(`${name} (control)`, async (t) => {
      const result = await suffer(await serverFor(t), outage, { tamper });
      report(name, figuresOf(result));
      assert.throws(() => assertBudgetHolds(result), /rejected|in a second/);
    });
  }
});

/**
 * The figures come from virtual time and from the long form. Here real servers die, and the tests
 * only wait for the recovery.
 */
describe("when a real Redis", { skip: withoutRedis, timeout: 120_000 }, () => {
  const real = Object.entries(outages).filter(([name]) =>
    /killed|restarted|stands still|scripts/.test(name),
  );
  for (const [name, outage] of real) {
    it(`${name}, replicas go on without it and use it again afterwards`, async (t) => {
      const redis = await serverFor(t, outage);
      const script: LoadOptions["script"] = async (load) => {
        // How many replicas go on alone now. On a busy machine one may do so at any time.
        const alone = () =>
          load.changes.reduce((sum, { source }) => sum + (source === "local" ? 1 : -1), 0);
        await load.pause(500);
        await outage.begin(redis);
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

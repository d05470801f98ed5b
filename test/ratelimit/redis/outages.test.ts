import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, it } from "node:test";
import { QueuedBucket } from "../../../src/ratelimit/queued-bucket.ts";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { reportTo } from "../../../src/report.ts";
import { ofSuite } from "../../of-suite.ts";
import { overridden } from "../../overridden.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { connected } from "../../redis/suite.ts";
import { figuresOf, type Load, type LoadResult, mixedLoad, runLoad } from "../load-rig.ts";
import { slidingWindowUpstream } from "../modelled-upstream.ts";
import { VirtualClock } from "../virtual-clock.ts";
import { Link, redisOn } from "./virtual-redis.ts";

/** The upstream's limit, in requests a second. */
const limit = 30;

/** What an outage does to a server on virtual time. */
type Suffering = Pick<RedisServer, "kill" | "start" | "stop" | "pause" | "resume" | "command">;

interface Outage {
  /** A server that starts again has its data. */
  readonly keeps?: true;
  /** All replicas go on alone meanwhile; absent where the outage may be too short for that. */
  readonly noticed?: true;
  begin(redis: Suffering, pause: (ms: number) => Promise<void>): Promise<void>;
  /** Ends the outage; absent if it is over at once. */
  end?(redis: Suffering): Promise<void>;
}

/** Outages of Redis, by name. */
const outages: Readonly<Record<string, Outage>> = {
  "is killed and loses everything": {
    noticed: true,
    begin: (redis) => redis.kill(),
    end: (redis) => redis.start(),
  },
  "is killed and keeps everything on disk": {
    keeps: true,
    noticed: true,
    begin: (redis) => redis.kill(),
    end: (redis) => redis.start(),
  },
  "is restarted and loses everything": {
    async begin(redis) {
      await redis.stop();
      await redis.start();
    },
  },
  "stands still": {
    noticed: true,
    begin: async (redis) => redis.pause(),
    end: async (redis) => redis.resume(),
  },
  "takes no writes as a replica": {
    noticed: true,
    begin: async (redis) => void (await redis.command("REPLICAOF", "127.0.0.1", 1)),
    end: async (redis) => void (await redis.command("REPLICAOF", "NO", "ONE")),
  },
  "is out of memory": {
    noticed: true,
    begin: async (redis) => void (await redis.command("CONFIG", "SET", "maxmemory", 1_000)),
    end: async (redis) => void (await redis.command("CONFIG", "SET", "maxmemory", 0)),
  },
  "has another kind of value under the key": {
    async begin(redis) {
      const [key] = (await redis.command("KEYS", "*:budget")) as string[];
      const replace = "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'not', 'ours')";
      await redis.command("EVAL", replace, 1, key!);
    },
  },
  "is flushed": {
    begin: async (redis) => void (await redis.command("FLUSHALL")),
  },
};

interface Suffered {
  readonly result: LoadResult;
  /** Each change of a replica's source of tokens. */
  readonly changes: readonly { readonly at: number; readonly source: string }[];
}

/** Asserts that no request was rejected and no second had more of them than the limit. */
function assertBudgetHolds({ result }: Suffered): void {
  const { rejected, sent, mostInAnySecond } = figuresOf(result);
  assert.ok(mostInAnySecond <= limit, `${mostInAnySecond} in a second`);
  assert.equal(rejected, 0, `${rejected} of ${sent} rejected`);
}

/** Asserts that all replicas use Redis within 2 s of its return, and then most of the budget. */
function assertBack({ result, changes }: Suffered, { noticed }: Pick<Outage, "noticed">): void {
  const [away, back] = [result.marks.get("away")!, result.marks.get("back")!];
  const sources = changes.map(({ source }) => source);
  const alone = sources.filter((source) => source === "share").length;
  assert.equal(sources.length, 2 * alone, `${sources}`);
  if (noticed) {
    const returns = changes.filter(({ at, source }) => source === "shared" && at > away);
    assert.ok(returns.length >= 3, `${sources}`);
    for (const { at } of returns.slice(0, 3)) {
      assert.ok(at < back + 2_000, `${at - back} ms after`);
    }
  }
  const isThen = ({ sentAt = 0 }) => sentAt >= back + 2_000 && sentAt < back + 4_000;
  const used = result.calls.filter(isThen).length / (2 * limit);
  assert.ok(used >= 0.85, `${used} of the budget used once Redis was back`);
}

/**
 * Overrides fields of a replica's requests to Redis and of the answers, which switches a protection
 * off.
 */
function tampering(
  request: Record<string, unknown>,
  answer: Record<string, unknown> = {},
): (client: RedisClient) => RedisClient {
  return (client) => {
    const run = async (script: string, keys: number, key: string, text: string, rules: string) => {
      const changed = JSON.stringify({ ...JSON.parse(text), ...request });
      const reply = await client.evalsha(script, keys, key, changed, rules);
      return JSON.stringify({ ...JSON.parse(String(reply)), ...answer });
    };
    return overridden(client, { eval: run as never, evalsha: run as never });
  };
}

const flushes: Outage = {
  async begin({ command }, pause) {
    for (let times = 0; times < 3; times++) {
      await command("FLUSHALL");
      await pause(100);
    }
  },
};

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

describe("when Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  const redis = ofSuite(() => connected(server.url));

  /** Three replicas of one account at 5 times its limit suffer an outage on virtual time. */
  async function suffer(outage: Outage, tamper = (client: RedisClient) => client) {
    await server.command("FLUSHALL");
    const clock = new VirtualClock();
    const link = new Link();
    const keys = accountKeys("test", randomUUID());
    const changes: Suffered["changes"][number][] = [];
    const report = reportTo({
      budgetSource: ({ source }) => void changes.push({ at: clock.now(), source }),
    });
    const client = tamper(redisOn(clock, redis.client, 1, link));
    const shared = { client, keys, clock, report, initialLimit: limit };
    const buckets = [1, 2, 3].map(
      (nth) => new QueuedBucket({ ...shared, replicaId: `${nth}`, reserve: 0.2, maxWaitMs: 1_500 }),
    );
    const script = async ({ pause, mark }: Load) => {
      const suffering = virtual(server, { clock, link, pause }, outage.keeps ?? false);
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
    const upstream = slidingWindowUpstream(limit);
    const callers = mixedLoad(limit);
    const result = await runLoad({ clock, buckets, upstream, callers, seconds: 0, script });
    return { result, changes };
  }

  for (const [name, outage] of Object.entries(outages)) {
    it(`${name}, the budget holds and all replicas are back within 2 s`, async () => {
      const suffered = await suffer(outage);
      assertBudgetHolds(suffered);
      assertBack(suffered, outage);
    });
  }

  const controls = {
    "is flushed again and again, the budget is overrun if nobody minds": {
      outage: flushes,
      tamper: tampering({ state: "" }),
    },
    "is out of memory, the budget is overrun if nobody tells what it used": {
      outage: outages["is out of memory"]!,
      tamper: tampering({ out: undefined }),
    },
    "stands still, the budget is overrun if nobody counts the others": {
      outage: outages["stands still"]!,
      tamper: tampering({}, { replicas: 1 }),
    },
  };
  for (const [name, { outage, tamper }] of Object.entries(controls)) {
    it(`${name} (control)`, async () => {
      const suffered = await suffer(outage, tamper);
      assert.throws(() => assertBudgetHolds(suffered), /rejected|in a second/);
    });
  }
});

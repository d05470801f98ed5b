import assert from "node:assert/strict";
import type { RedisClient } from "../../../src/redis/connect.ts";
import type { RedisServer, Settings } from "../../redis/server.ts";
import { figuresOf, type LoadResult, usedBetween } from "../shared-load.ts";

/** What an outage does to a server: to a real one, or to one on virtual time. */
export type Suffering = Pick<
  RedisServer,
  "kill" | "start" | "stop" | "pause" | "resume" | "command"
>;

export interface Outage {
  readonly settings?: Settings;
  /** All replicas go on alone meanwhile; absent where the outage may be too short for that. */
  readonly noticed?: true;
  begin(redis: Suffering, pause: (ms: number) => Promise<void>): Promise<void>;
  /** Ends the outage; absent if it is over at once. */
  end?(redis: Suffering): Promise<void>;
}

/** Outages of Redis, by name. */
export const outages: Readonly<Record<string, Outage>> = {
  "is killed and loses everything": {
    noticed: true,
    begin: (redis) => redis.kill(),
    end: (redis) => redis.start(),
  },
  "is killed and keeps everything on disk": {
    settings: [
      ["appendonly", "yes"],
      ["appendfsync", "always"],
    ],
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
    noticed: true,
    async begin(redis) {
      const [key] = (await redis.command("KEYS", "*:bucket")) as string[];
      const replace = "redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'not', 'ours')";
      await redis.command("EVAL", replace, 1, key!);
    },
    end: async (redis) => void (await redis.command("FLUSHALL")),
  },
  "is flushed": {
    begin: async (redis) => void (await redis.command("FLUSHALL")),
  },
  "forgets its scripts": {
    begin: async (redis) => void (await redis.command("SCRIPT", "FLUSH")),
  },
};

/** Asserts that no request was rejected and no second had more of them than the limit. */
export function assertBudgetHolds(result: LoadResult): void {
  const { rejected, sent, mostInAnySecond } = figuresOf(result);
  assert.ok(mostInAnySecond <= limit, `${mostInAnySecond} in a second`);
  assert.equal(rejected, 0, `${rejected} of ${sent} rejected`);
}

/**
 * Asserts that all replicas use Redis within 2 s of its return, and then `leastUsed` of the budget.
 */
export function assertBack(
  result: LoadResult,
  { noticed }: Pick<Outage, "noticed">,
  leastUsed: number,
): void {
  const [away, back] = [result.marks.get("away")!, result.marks.get("back")!];
  const sources = result.changes.map(({ source }) => source);
  const alone = sources.filter((source) => source === "local").length;
  assert.equal(sources.length, 2 * alone, `${sources}`);
  if (noticed) {
    const returns = result.changes.filter(({ at, source }) => source === "redis" && at > away);
    assert.ok(returns.length >= 3, `${sources}`);
    for (const { at } of returns.slice(0, 3)) {
      assert.ok(at < back + 2_000, `${at - back} ms after`);
    }
  }
  const used = usedBetween(result, limit, back + 2_000, back + 4_000);
  assert.ok(used >= leastUsed, `${used} of the budget used once Redis was back`);
}

/**
 * Overrides fields of a replica's requests to Redis and of the answers, which switches a protection
 * off.
 */
export function tampering(
  request: Record<string, unknown>,
  answer: Record<string, unknown> = {},
): (client: RedisClient) => RedisClient {
  return (client) =>
    new Proxy(client, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== "function") return value;
        if (name !== "evalsha" && name !== "eval") return value.bind(target);
        return async (script: string, keys: number, key: string, text: string, rules: string) => {
          const changed = JSON.stringify({ ...JSON.parse(text), ...request });
          const reply: unknown = await value.call(target, script, keys, key, changed, rules);
          return JSON.stringify({ ...JSON.parse(String(reply)), ...answer });
        };
      },
    });
}

/** The upstream's limit, in requests a second. */
export const limit = 30;

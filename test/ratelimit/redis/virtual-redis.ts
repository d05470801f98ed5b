import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { RedisClient } from "../../../src/redis/connect.ts";
import type { VirtualClock } from "../virtual-clock.ts";

const file = new URL("../../../src/ratelimit/redis/take-tokens.lua", import.meta.url);
const lua = readFileSync(file, "utf8");
/** The same script, which is told the time. */
const onGivenTime = lua.replace("redis.call('TIME')", "{ ARGV[3], ARGV[4] }");
assert.notEqual(onGivenTime, lua);

/**
 * A real Redis that lives on a virtual clock: it runs the real script, reads the time from the clock,
 * and each reply takes `roundTripMs` of that time.
 */
export function redisOn(
  clock: VirtualClock,
  client: RedisClient,
  roundTripMs: number,
): RedisClient {
  const run = async (_script: string, keys: number, key: string, ...args: string[]) => {
    const micros = Math.round(clock.now() * 1_000) % 1_000_000;
    const time = [1_000_000 + Math.floor(clock.now() / 1_000), micros].map(String);
    const reply: unknown = await clock.holdFor(
      client.eval(onGivenTime, keys, key, ...args, ...time),
    );
    await new Promise<void>((resolve) => clock.after(roundTripMs, resolve));
    return reply;
  };
  return new Proxy(client, {
    get(target, name) {
      if (name === "evalsha" || name === "eval") return run;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

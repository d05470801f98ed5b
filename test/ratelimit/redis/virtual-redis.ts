import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { RedisClient } from "../../../src/redis/connect.ts";
import { overridden } from "../../overridden.ts";
import { until } from "../../until.ts";
import type { VirtualClock } from "../virtual-clock.ts";

const file = new URL("../../../src/ratelimit/redis/take-tokens.lua", import.meta.url);
const lua = readFileSync(file, "utf8");
/** The same script, with the time as arguments. */
const onGivenTime = lua.replace("redis.call('TIME')", "{ ARGV[3], ARGV[4] }");
assert.notEqual(onGivenTime, lua);

/** The link between a Redis and its clients. */
export class Link {
  #state: "open" | "cut" | "still" = "open";
  #waiting: (() => void)[] = [];

  /** Each command fails from now on. */
  cut(): void {
    this.#state = "cut";
  }

  /** Commands wait until `open` from now on. */
  hold(): void {
    this.#state = "still";
  }

  /** Lets all commands through, those that wait included. */
  open(): void {
    this.#state = "open";
    for (const go of this.#waiting.splice(0)) go();
  }

  async passed(): Promise<void> {
    if (this.#state === "cut") throw new Error("Connection is closed.");
    if (this.#state === "still") await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }
}

/**
 * A real Redis on a virtual clock: it runs the real script with the clock's time, and each reply
 * takes `roundTripMs` of that time.
 */
export function redisOn(
  clock: VirtualClock,
  client: RedisClient,
  roundTripMs: number,
  link?: Link,
): RedisClient {
  const run = async (_script: string, keys: number, key: string, ...args: string[]) => {
    await link?.passed();
    const micros = Math.round(clock.now() * 1_000) % 1_000_000;
    const time = [1_000_000 + Math.floor(clock.now() / 1_000), micros].map(String);
    const reply: unknown = await clock.holdFor(async () => {
      // A connection that was dropped, as after READONLY, comes back in real time.
      await until(() => client.status === "ready");
      return await client.eval(onGivenTime, keys, key, ...args, ...time);
    });
    await new Promise<void>((resolve) => clock.after(roundTripMs, resolve));
    return reply;
  };
  return overridden(client, { eval: run as never, evalsha: run as never, status: "ready" });
}

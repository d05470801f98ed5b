import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { ask, StoreUnavailable } from "../../src/redis/ask.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { Secret } from "../../src/secrets/secret.ts";
import { closing } from "../of-suite.ts";
import { until } from "../until.ts";
import { startCluster } from "./cluster.ts";
import { startSentinelSet } from "./sentinel.ts";
import { type RedisServer, startRedis, withoutRedis } from "./server.ts";

interface Store {
  readonly url: string;
  readonly primary: RedisServer;
}

/** @param downAfterMs after how long the other nodes or the Sentinels count a server as down */
type Begin = (t: TestContext, downAfterMs: number) => Promise<Store>;

const topologies: Readonly<Record<string, Begin>> = {
  async alone(t) {
    const primary = closing(t, await startRedis());
    return { url: primary.url, primary };
  },
  async "behind Sentinel"(t, downAfterMs) {
    const set = closing(t, await startSentinelSet([], downAfterMs));
    return { url: set.url, primary: set.servers[0] as RedisServer };
  },
  async "as a cluster"(t, downAfterMs) {
    const cluster = closing(
      t,
      await startCluster(3, [["cluster-node-timeout", String(downAfterMs)]]),
    );
    return { url: cluster.url, primary: cluster.nodes[0] as RedisServer };
  },
};

const patientMs = 600_000;

const options = { skip: withoutRedis, timeout: 120_000, concurrency: true };

describe("the link to Redis", options, () => {
  for (const [name, begin] of Object.entries(topologies)) {
    describe(name, () => {
      /**
       * Connects; the returned function writes to every node. It resolves to `away` if a node is
       * away, else to `silent` if a write failed otherwise, else to `up`.
       */
      function connect(t: TestContext, url: string) {
        const redis = closing(
          t,
          connectRedis(new Secret(url), () => {}),
        );
        const { client } = redis;
        const questions = ["{a}", "{b}", "{c}", "{d}", "{e}", "{f}"].map((key) => async () => {
          try {
            await ask(client, () => client.set(key, "1"));
            return "up";
          } catch (error) {
            assert(error instanceof StoreUnavailable);
            return error.away ? "away" : "silent";
          }
        });
        return async () => {
          const told = new Set(await Promise.all(questions.map((question) => question())));
          return told.has("away") ? "away" : told.has("silent") ? "silent" : "up";
        };
      }

      it("is away while its primary refuses connections, and up afterwards", async (t) => {
        // A cluster has to report its missing primary itself; Sentinels must not promote another
        // one.
        const store = await begin(t, name === "as a cluster" ? 1_000 : patientMs);
        const state = connect(t, store.url);
        await until(async () => (await state()) === "up");
        await store.primary.kill();
        await until(async () => (await state()) === "away");
        await store.primary.start();
        await until(async () => (await state()) === "up");
      });

      it("is silent, not away, while its primary only accepts connections", async (t) => {
        const store = await begin(t, patientMs);
        const known = connect(t, store.url);
        await until(async () => (await known()) === "up");
        store.primary.pause();
        // A client that never received an answer reports the same.
        const fresh = connect(t, store.url);
        const untilMs = performance.now() + 3_000;
        while (performance.now() < untilMs) {
          assert.deepEqual(await Promise.all([known(), fresh()]), ["silent", "silent"]);
          await delay(50);
        }
        store.primary.resume();
        for (const state of [known, fresh]) await until(async () => (await state()) === "up");
      });
    });
  }
});

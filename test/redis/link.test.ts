import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, it, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import slotOf from "cluster-key-slot";
import type { Cluster } from "ioredis";
import { ask, isAway, StoreUnavailable } from "../../src/redis/ask.ts";
import { connectRedis } from "../../src/redis/connect.ts";
import { linkOf } from "../../src/redis/link.ts";
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

test("of a cluster only the node that serves a key counts for it", () => {
  const node = (port: number) =>
    Object.assign(new EventEmitter(), { options: { host: "10.0.0.1", port } });
  const [refusing, serving] = [node(1), node(2)];
  const slots = Array.from({ length: 16_384 }, (_, slot) => [`10.0.0.1:${slot < 8_192 ? 1 : 2}`]);
  const nodes = () => [refusing, serving];
  const client = Object.assign(new EventEmitter(), { isCluster: true, slots, nodes });
  const link = linkOf(client as unknown as Cluster);
  const [there, here] = ["foo{b}", "{a}"];
  assert.deepEqual(
    [there, here].map((key) => slotOf(key) < 8_192),
    [true, false],
  );
  for (const event of ["connect", "ready"]) serving.emit(event);
  for (const event of ["connecting", "close"]) refusing.emit(event);
  const states = () => [link.isAway(), link.isAway(there), link.isAway(here)];
  assert.deepEqual(states(), [true, true, false]);
  client.emit("-node", refusing);
  assert.deepEqual(states(), [false, true, false], "the driver drops a node that refuses it");
  client.emit("+node", node(1));
  assert.deepEqual(states(), [false, false, false]);
  const error = new StoreUnavailable(new Error(), { away: true, broken: false });
  assert.equal(isAway(error, client as unknown as Cluster, here), false);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { describe, it, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { assertKept, maxPause, sendCallbacks, watch } from "../ledger/event-load.ts";
import { replica } from "../ledger/redis/rig.ts";
import { startSentinelSet } from "../redis/sentinel.ts";
import { startRedis, withoutRedis } from "../redis/server.ts";
import { until } from "../until.ts";

const timeout = 120_000;
const durable: [string, string][] = [
  ["appendonly", "yes"],
  ["appendfsync", "always"],
];

/** The long forms of test/ledger/redis/away.test.ts and failover.test.ts, one at a time. */
describe("event log under 100 callbacks a second", { skip: withoutRedis }, () => {
  /** Starts three replicas with a watcher each, and sends callbacks to all of them. */
  async function load(t: TestContext, url: string, minReplicas = 0) {
    const replicas = await Promise.all([1, 2, 3].map(() => replica(url, { minReplicas })));
    t.after(() => Promise.all(replicas.map((one) => one.close())));
    const logs = replicas.map(({ log }) => log);
    const watchers = logs.map(watch);
    const callbacks = sendCallbacks(logs, 100);
    await until(async () => callbacks.acknowledged.size > 100);
    return {
      callbacks,
      /** Milliseconds until a new callback is acknowledged and has reached all watchers. */
      async recovery(): Promise<number> {
        const start = performance.now();
        const fresh = () =>
          [...callbacks.acknowledged].filter(([, at]) => at > start).map(([id]) => id);
        await until(async () => fresh().some((id) => watchers.every(({ seen }) => seen.has(id))));
        return performance.now() - start;
      },
      async check() {
        await callbacks.stop();
        const pause = Math.round(maxPause(callbacks));
        await assertKept(logs[0]!, callbacks, watchers);
        const restarts = watchers.map((watcher) => watcher.restarts());
        t.diagnostic(`${callbacks.acknowledged.size} acknowledged, ${callbacks.refused()} refused`);
        t.diagnostic(`${pause} ms without a 200, ${restarts} restarts`);
        return { restarts: Math.max(...restarts) };
      },
    };
  }

  it("loses nothing while Redis is killed every 3 s", { timeout }, async (t) => {
    const server = await startRedis(durable);
    t.after(() => server.close());
    const { recovery, check } = await load(t, server.url);
    for (let round = 0; round < 8; round++) {
      await delay(3_000);
      await server.kill();
      await delay(round * 200);
      await server.start();
      const ms = await recovery();
      assert(ms < 2_000, `${ms} ms after Redis was back`);
    }
    assert.equal((await check()).restarts, 0);
  });

  it("loses nothing while Redis is paused for 5 s", { timeout }, async (t) => {
    const server = await startRedis();
    t.after(() => server.close());
    const { recovery, check } = await load(t, server.url);
    for (let round = 0; round < 3; round++) {
      server.pause();
      await delay(5_000);
      server.resume();
      const ms = await recovery();
      t.diagnostic(`${Math.round(ms)} ms after Redis moved again`);
      assert(ms < 2_000, `${ms} ms after Redis moved again`);
      await delay(1_000);
    }
    assert.equal((await check()).restarts, 0);
  });

  it("recovers by itself when connections go dead without being closed", { timeout }, async (t) => {
    const server = await startRedis();
    t.after(() => server.close());
    const proxy = await startProxy(server.port);
    t.after(() => proxy.close());
    const { recovery, check } = await load(t, proxy.url);
    for (let round = 0; round < 3; round++) {
      proxy.strand();
      const ms = await recovery();
      t.diagnostic(`${Math.round(ms)} ms after the connections went dead`);
      assert(ms < 5_000, `${ms} ms after the connections went dead`);
      await delay(1_000);
    }
    assert.equal((await check()).restarts, 0);
  });

  it("makes every watcher start again when Redis is flushed", { timeout }, async (t) => {
    const server = await startRedis();
    t.after(() => server.close());
    const { callbacks, recovery, check } = await load(t, server.url);
    for (let round = 0; round < 3; round++) {
      await server.command("FLUSHALL");
      assert((await recovery()) < 2_000);
      // A watcher that starts again cannot get what was flushed.
      (callbacks.acknowledged as Map<string, number>).clear();
      await delay(1_000);
    }
    assert.equal((await check()).restarts, 3);
  });

  it("loses nothing through two failovers by Sentinel", { timeout }, async (t) => {
    const set = await startSentinelSet();
    t.after(() => set.close());
    const { recovery, check } = await load(t, set.url, 1);
    for (let round = 0; round < 2; round++) {
      const port = await set.masterPort();
      const master = set.servers.find((server) => server.port === port);
      await master?.kill();
      await until(async () => (await set.masterPort()) !== port);
      const ms = await recovery();
      t.diagnostic(`${Math.round(ms)} ms after there was a new master`);
      assert(ms < 2_000, `${ms} ms after there was a new master`);
      // Wait until Sentinel has made the old master a replica.
      await master?.start();
      await until(async () => String(await master?.command("ROLE")).startsWith("slave"));
      await delay(3_000);
    }
    await check();
  });
});

/** A TCP proxy; `strand` makes it drop all bytes of the open connections without closing them. */
async function startProxy(port: number) {
  const alive = new Set<Socket>();
  const all = new Set<Socket>();
  const proxy = createServer((incoming) => {
    const outgoing = connect(port, "127.0.0.1");
    for (const [from, to] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      all.add(from);
      alive.add(from);
      from.on("error", () => {});
      from.on("data", (data) => void (alive.has(from) && to.write(data)));
      from.on("close", () => {
        all.delete(from);
        if (alive.has(from)) to.destroy();
      });
    }
  }).listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port: ownPort } = proxy.address() as AddressInfo;
  return {
    url: `redis://127.0.0.1:${ownPort}`,
    strand: () => alive.clear(),
    async close() {
      for (const socket of all) socket.destroy();
      proxy.close();
      await once(proxy, "close");
    },
  };
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { addReplica, ownerOf, startCluster } from "../../redis/cluster.ts";
import { startSentinelSet } from "../../redis/sentinel.ts";
import { inSync, type RedisServer, withoutRedis } from "../../redis/server.ts";
import { closing } from "../../redis/suite.ts";
import { until } from "../../until.ts";
import { assertKept, maxPause, sendCallbacks, watch } from "../event-load.ts";
import { replica } from "./rig.ts";

const timeout = 120_000;

describe("event log through a failover", { skip: withoutRedis, concurrency: true }, () => {
  it("keeps every acknowledged callback when Sentinel promotes another master", {
    timeout,
  }, async (t) => {
    const set = closing(t, await startSentinelSet());
    const join = () => replica(set.url, { minReplicas: 1 });
    const [a, b] = await Promise.all([join(), join()]);
    t.after(() => Promise.all([a.close(), b.close()]));

    const watchers = [watch(a.log), watch(b.log)];
    const callbacks = sendCallbacks([a.log, b.log], 100);
    await until(async () => callbacks.acknowledged.size > 100);
    const before = await set.masterPort();
    await set.servers[0]?.kill();
    await until(async () => (await set.masterPort()) !== before);
    const known = performance.now();
    const settled = callbacks.acknowledged.size;
    await until(async () => callbacks.acknowledged.size > settled + 100);
    await callbacks.stop();
    await assertKept(a.log, callbacks, watchers);
    const first = [...callbacks.acknowledged.values()].find((at) => at > known) ?? 0;
    t.diagnostic(`${Math.round(first - known)} ms from the new master to the next 200`);
    t.diagnostic(`${Math.round(maxPause(callbacks))} ms without one`);
    t.diagnostic(`${watchers.map(({ restarts }) => restarts())} watchers started again`);
    assert(callbacks.refused() > 0, "the control: it was away");
  });

  it("keeps every acknowledged callback when a cluster node is replaced", {
    timeout,
  }, async (t) => {
    const cluster = closing(t, await startCluster());
    const join = () => replica(cluster.url, { minReplicas: 1 });
    const [a, b] = await Promise.all([join(), join()]);
    t.after(() => Promise.all([a.close(), b.close()]));
    const owner = await ownerOf(cluster, "test:{shop}:log");
    const standby = closing(t, await addReplica(cluster, owner));

    const watchers = [watch(a.log), watch(b.log)];
    const callbacks = sendCallbacks([a.log, b.log], 100);
    await until(async () => callbacks.acknowledged.size > 100);
    await cluster.nodes[owner]?.kill();
    await until(async () => String(await standby.command("ROLE")).startsWith("master"));
    // The new master has no replica yet, so it must not acknowledge anything.
    const settled = callbacks.acknowledged.size;
    const old = cluster.nodes[owner] as RedisServer;
    await old.start();
    await inSync(old);
    const known = performance.now();
    await until(async () => callbacks.acknowledged.size > settled + 100);
    await callbacks.stop();
    await assertKept(a.log, callbacks, watchers);
    const first = [...callbacks.acknowledged.values()].find((at) => at > known) ?? 0;
    t.diagnostic(`${Math.round(first - known)} ms from the return of a replica to the next 200`);
    t.diagnostic(`${watchers.map(({ restarts }) => restarts())} watchers started again`);
    assert(callbacks.refused() > 0, "the control: it was away");
  });
});

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { freePort, type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { cursorsOf } from "./callers.ts";
import { type Haproxy, startHaproxy, withoutHaproxy } from "./haproxy.ts";
import { type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";
import { callOn, followOn } from "./rolling-load.ts";
import { password, type Serving, serveBefore } from "./serving.ts";
import { killSpawned } from "./spawn.ts";

const skip = [withoutRedis, withoutHaproxy].filter(Boolean).join("; ") || false;

describe("two gateways behind HAProxy", { skip }, () => {
  let redis: RedisServer;
  let upstream: MoneyUpstream;
  let replicas: Serving[];
  let proxy: Haproxy;

  before(async () => {
    redis = await startRedis();
    upstream = await startMoneyUpstream(password);
    // With slow answers, some call is always in flight.
    upstream.answerMs = 50;
    replicas = await Promise.all([start(), start()]);
    proxy = await startHaproxy(replicas);
    await replicas[0]?.pay("none-first");
  });
  after(async () => {
    killSpawned();
    await proxy?.close();
    await upstream.close();
    await redis.close();
  });

  /** Starts a gateway, at the addresses of the one that it replaces, if any. */
  async function start({ rpcUrl, publicUrl, adminUrl }: Partial<Serving> = {}): Promise<Serving> {
    // Unlike port 0: the system gives these ports to no other process while the gateway is away.
    const address = async (url?: string) =>
      url ? new URL(url).host : `127.0.0.1:${await freePort()}`;
    return serveBefore(upstream.url, {
      PUBLIC_ADDR: await address(publicUrl),
      RPC_ADDR: await address(rpcUrl),
      ADMIN_ADDR: await address(adminUrl),
      REDIS_URL: redis.url,
      RATE_LIMIT_INITIAL: "2000",
      // If a busy machine delays Redis, calls wait for their share instead of being refused.
      RATE_LIMIT_MAX_WAIT: "20s",
      RECONCILE_AFTER: "0",
      // Ten health checks of the proxy, of which one is enough.
      SHUTDOWN_DELAY: "1s",
    });
  }

  async function replace(index: number, signal: "SIGTERM" | "SIGKILL"): Promise<unknown[]> {
    const old = replicas[index];
    assert.ok(old);
    old.spawned.child.kill(signal);
    const exit = await old.spawned.exit;
    replicas[index] = await start(old);
    await proxy.serving(2);
    return exit;
  }

  test("restarting each gateway in turn fails no call and loses no event", async (t) => {
    const followers = followOn(proxy);
    const calls = callOn(proxy, password);
    t.after(async () => {
      await calls.stop();
      await Promise.all(Object.values(followers).map((follower) => follower.stop()));
    });
    const exits: unknown[] = [];
    for (const index of replicas.keys()) exits.push(await replace(index, "SIGTERM"));
    await calls.stop();

    const total = [...calls.made.values()].reduce((sum, count) => sum + count, 0);
    console.log(`${total} calls, ${calls.failures.length} failed`, Object.fromEntries(calls.made));
    assert.deepEqual(calls.failures.slice(0, 5), []);
    assert.deepEqual(exits, [
      [0, null],
      [0, null],
    ]);

    const most = () => Math.max(...Object.values(followers).map(({ seen }) => seen.length));
    const every = await cursorsOf(replicas[0] as Serving, most());
    for (const [name, follower] of Object.entries(followers)) {
      await until(async () => follower.seen.length >= every.length);
      console.log(`${name}: ${follower.seen.length} events`, follower.ends);
      assert.deepEqual(follower.seen.slice(0, every.length), every, name);
      assert.ok(follower.ends.length >= 1, `${name} was never ended`);
      for (const { code, resumeCursor, events } of follower.ends) {
        assert.equal(code, "UNAVAILABLE", name);
        // A stream that was refused at once is resumed from the cursor that it requested.
        assert.ok(resumeCursor || events === 0, name);
      }
    }
  });

  test("control: killing a gateway, without a drain, fails calls", async () => {
    const calls = callOn(proxy, password);
    await until(async () => [...calls.made.values()].every((count) => count > 10));
    const release = upstream.hold();
    let victim = -1;
    try {
      // Choose a gateway with a call in flight, which stays so until `release`.
      await until(async () => {
        const { sum } = await scrapeOf(replicas[++victim % replicas.length] as Serving);
        return sum("upstream_requests_in_flight", {}) > 0;
      });
      replicas[victim % replicas.length]?.spawned.child.kill("SIGKILL");
      await until(async () => calls.failures.length > 0);
    } finally {
      release();
    }
    await replace(victim % replicas.length, "SIGKILL");
    await calls.stop();
    console.log(`killed: ${calls.failures.length} failed`, calls.failures.slice(0, 3));
    assert.ok(calls.failures.length > 0);
  });
});

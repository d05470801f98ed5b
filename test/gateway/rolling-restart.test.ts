import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { freePort, type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { clientOf, cursorsOf, hostedPayment } from "./callers.ts";
import { type Haproxy, startHaproxy, withoutHaproxy } from "./haproxy.ts";
import { type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";
import { callOn, followOn } from "./rolling-load.ts";
import { killSpawned, type Spawned, spawnCli } from "./spawn.ts";

const password = "password";
const skip = [withoutRedis, withoutHaproxy].filter(Boolean).join("; ") || false;

interface Replica {
  readonly spawned: Spawned;
  readonly ready: Record<string, string>;
}

describe("two gateways behind HAProxy", { skip, timeout: 240_000 }, () => {
  let redis: RedisServer;
  let upstream: MoneyUpstream;
  let replicas: Replica[];
  let proxy: Haproxy;

  before(async () => {
    redis = await startRedis();
    upstream = await startMoneyUpstream(password);
    // With slow answers, some call is always in flight.
    upstream.answerMs = 50;
    replicas = await Promise.all([start(), start()]);
    proxy = await startHaproxy(replicas.map(({ ready }) => ready as never));
    const { rpc = "" } = replicas[0]?.ready ?? {};
    await clientOf(PaymentService, { rpcUrl: rpc }).createPayment(hostedPayment("none-first"));
  });
  after(async () => {
    killSpawned();
    await proxy?.close();
    await upstream.close();
    await redis.close();
  });

  /** Starts a gateway, at the addresses of the one that it replaces, if any. */
  async function start({ rpc, public: web, admin }: Record<string, string> = {}): Promise<Replica> {
    // Unlike port 0: the system gives these ports to no other process while the gateway is away.
    const address = async (url?: string) =>
      url ? new URL(url).host : `127.0.0.1:${await freePort()}`;
    const spawned = spawnCli(["serve"], {
      PUBLIC_ADDR: await address(web),
      RPC_ADDR: await address(rpc),
      ADMIN_ADDR: await address(admin),
      UPSTREAM_URL: upstream.url,
      UPSTREAM_LOGIN: "shop",
      UPSTREAM_PASSWORD: password,
      AUTH_MODE: "none",
      REDIS_URL: redis.url,
      RATE_LIMIT_INITIAL: "2000",
      // If a busy machine delays Redis, calls wait for their share instead of being refused.
      RATE_LIMIT_MAX_WAIT: "20s",
      RECONCILE_AFTER: "0",
      // Ten health checks of the proxy, of which one is enough.
      SHUTDOWN_DELAY: "1s",
      LOG_LEVEL: "warn",
    });
    return { spawned, ready: await spawned.ready };
  }

  async function replace(index: number, signal: "SIGTERM" | "SIGKILL"): Promise<unknown[]> {
    const old = replicas[index];
    assert.ok(old);
    old.spawned.child.kill(signal);
    const exit = await old.spawned.exit;
    replicas[index] = await start(old.ready);
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
    const every = await cursorsOf({ rpcUrl: replicas[0]?.ready.rpc ?? "" }, most());
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
        const { ready } = replicas[++victim % replicas.length] as Replica;
        const { sum } = await scrapeOf({ adminUrl: ready.admin ?? "" });
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

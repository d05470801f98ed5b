import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Client } from "@connectrpc/connect";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { timeoutMs } from "../until.ts";
import { clientOf, hostedPayment, paymentTold, postCallback, type Urls } from "./callers.ts";
import { freePorts, killSpawned, type Spawned, spawnCli } from "./spawn.ts";
import { type StrictUpstream, startStrictUpstream } from "./strict-upstream.ts";
import { edges, watch } from "./watches.ts";

/**
 * Figures of a budget under load need an idle machine: the long form, `npm run faults`, checks what
 * the gateway promises. The short form demands only what a busy machine can reach. It still
 * distinguishes a shared budget from three separate ones: of their requests, half would be refused.
 */
const long = process.env.FAULTS === "long";
const loadSeconds = long ? 20 : 1;
const goals = long
  ? { used: 0.9, rejected: 0.001, slowestMs: 1_000, refusedPayments: 0 }
  : { used: 0.01, rejected: 0.3, slowestMs: 20_000, refusedPayments: 0.5 };
const password = "password";

describe("three gateways on one Redis", { skip: withoutRedis, timeout: 300_000 }, () => {
  let redis: RedisServer;
  let upstream: StrictUpstream;
  let replicas: Replica[];

  before(async () => {
    redis = await startRedis([
      ["appendonly", "yes"],
      ["appendfsync", "always"],
    ]);
    upstream = await startStrictUpstream(50);
    replicas = await Promise.all([start(), start(), start()]);
  });
  after(async () => {
    killSpawned();
    upstream.close();
    await redis.close();
  });

  const start = async (): Promise<Replica> => {
    const spawned = spawnCli(["serve"], {
      ...freePorts,
      UPSTREAM_URL: upstream.url,
      UPSTREAM_LOGIN: "shop",
      UPSTREAM_PASSWORD: password,
      AUTH_MODE: "none",
      REDIS_URL: redis.url,
      LOG_LEVEL: "warn",
    });
    const { rpc = "", public: publicUrl = "" } = await spawned.ready;
    const at = { rpcUrl: rpc };
    return {
      ...{ spawned, publicUrl, rpcUrl: rpc },
      rpc: clientOf(PaymentService, at),
      events: clientOf(EventService, at),
      read: async (externalId) => {
        const response = await fetch(`${rpc}/payments.v1.PayoutService/GetPayout`, {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: JSON.stringify({ external_id: externalId }),
        });
        await response.arrayBuffer();
        return response.status;
      },
    };
  };

  test("a callback to one gateway reaches watchers at the others by gRPC, SSE and WebSocket", async () => {
    const [a, b, c] = replicas as [Replica, Replica, Replica];
    const externalId = "order-spread";
    assert.equal(await callback(a, externalId, "pending"), 200);
    const watchers = edges.map((edge, n) => watch(edge, n % 2 === 0 ? b : c, externalId));
    for (const watcher of watchers) assert.equal((await watcher.next())?.status, "PENDING");

    const latencies: number[] = [];
    const next = watchers.map((watcher) => watcher.next());
    const sentAt = performance.now();
    assert.equal(await callback(a, externalId, "success"), 200);
    for (const seen of next) {
      assert.equal((await seen)?.status, "SUCCESS");
      latencies.push(Math.round(performance.now() - sentAt));
    }
    console.log(`callback at A to watchers at B and C: ${latencies.join(", ")} ms`);
    await Promise.all(watchers.map((watcher) => watcher.leave()));
  });

  test("with five times the load, the budget is used, not exceeded, and payments do not wait", async () => {
    const run = await load(loadSeconds);
    console.log(report("5x load", run));
    assertBudget(run, 50 * loadSeconds);
  });

  test("the budget is kept while a gateway is killed, and no callback answered 200 is lost", async () => {
    const acknowledged = new Set<string>();
    let n = 0;
    let killed = false;
    const run = await load(2 * loadSeconds, async () => {
      const startAt = performance.now();
      const killAt = startAt + loadSeconds * 750;
      const endAt = startAt + loadSeconds * 1_500;
      while (!killed || performance.now() < endAt) {
        const externalId = `flow-${n++}`;
        const replica = replicas[n % replicas.length];
        const sent = replica && callback(replica, externalId, "success");
        sent?.then(
          (status) => status === 200 && acknowledged.add(externalId),
          () => {},
        );
        if (!killed && performance.now() > killAt) {
          killed = true;
          replicas.pop()?.spawned.child.kill("SIGKILL");
        }
        await delay(10);
      }
    });
    assert.ok(killed);
    console.log(report("one of three killed", run), `${acknowledged.size} callbacks answered 200`);
    assertRejections(run);

    // Two replicas may answer in another order than they stored: no event is known to be the last.
    const missing = new Set(acknowledged);
    const [survivor] = replicas as [Replica];
    const signal = AbortSignal.timeout(timeoutMs);
    const all = survivor.events.streamEvents({ afterCursor: "earliest" }, { signal });
    try {
      for await (const { event } of all) {
        missing.delete(event?.externalId ?? "");
        if (missing.size === 0) break;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
    assert.deepEqual([...missing], []);
    replicas.push(await start());
  });

  interface Load {
    accepted: number;
    rejected: number;
    slowestPaymentMs: number;
    payments: number;
    refusedPayments: number;
  }

  /** Makes 250 calls a second, five times the budget, over all gateways; 5 of them are payments. */
  async function load(seconds: number, meanwhile?: () => Promise<void>): Promise<Load> {
    // The answer reports the limit, and the delay refills the budget that the test before used.
    await replicas[0]?.read("first");
    await delay(1_500);
    upstream.reset();
    let slowestPaymentMs = 0;
    let payments = 0;
    let refusedPayments = 0;
    let n = 0;
    const calls = new Set<Promise<unknown>>();
    const side = meanwhile?.();
    const startAt = performance.now();
    while (performance.now() - startAt < seconds * 1_000) {
      const due = Math.floor(((performance.now() - startAt) / 1_000) * 250);
      for (; n < due; n++) {
        const replica = replicas[n % replicas.length];
        if (!replica) continue;
        // Payments take a tenth of the budget, which is a fiftieth of the load.
        const money = n % 50 === 0;
        const askedAt = performance.now();
        const call = money
          ? replica.rpc
              .createPayment(hostedPayment(`load-${startAt}-${n}`))
              .then(
                () => payments++,
                () => refusedPayments++,
              )
              .finally(() => {
                slowestPaymentMs = Math.max(slowestPaymentMs, performance.now() - askedAt);
              })
          : replica.read(`payout-${n}`).catch(() => {});
        calls.add(call);
        call.finally(() => calls.delete(call));
      }
      await delay(4);
    }
    const counts = { ...upstream.counts };
    await Promise.allSettled(calls);
    await side;
    return { ...counts, slowestPaymentMs: Math.round(slowestPaymentMs), payments, refusedPayments };
  }

  function assertBudget(run: Load, budget: number): void {
    const { accepted } = run;
    assertRejections(run);
    assert.ok(accepted >= goals.used * budget, `${accepted} of ${budget} used`);
    assert.ok(run.slowestPaymentMs <= goals.slowestMs, `a payment took ${run.slowestPaymentMs} ms`);
    const { payments, refusedPayments } = run;
    assert.ok(payments > 0 && refusedPayments <= goals.refusedPayments * payments, "some refused");
  }

  function assertRejections({ accepted, rejected }: Load): void {
    assert.ok(rejected <= 1 + (accepted + rejected) * goals.rejected, `${rejected} rejected`);
  }

  function report(name: string, run: Load): string {
    const { accepted, rejected, slowestPaymentMs, payments } = run;
    return `${name}: ${accepted} accepted, ${rejected} rejected, ${payments} payments, slowest ${slowestPaymentMs} ms`;
  }
});

interface Replica extends Urls {
  readonly spawned: Spawned;
  readonly rpc: Client<typeof PaymentService>;
  readonly events: Client<typeof EventService>;
  /** Makes a look-up that goes to the upstream, and resolves with its HTTP status. */
  read(externalId: string): Promise<number>;
}

const callbackAnswer = (to: Replica, externalId: string, status: string) =>
  postCallback(to, paymentTold(externalId, status), {
    ...{ password, signal: AbortSignal.timeout(timeoutMs) },
  });

const callback = async (...sent: Parameters<typeof callbackAnswer>): Promise<number> =>
  (await callbackAnswer(...sent)).status;

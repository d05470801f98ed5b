import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { timeoutMs } from "../until.ts";
import { clientOf } from "./callers.ts";
import { type MoneyUpstream, startMoneyUpstream } from "./money-upstream.ts";
import { password, type Serving, serveBefore } from "./serving.ts";
import { killSpawned } from "./spawn.ts";

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

describe("three gateways on one Redis", { skip: withoutRedis, timeout: 300_000 }, () => {
  let redis: RedisServer;
  let upstream: MoneyUpstream;
  let replicas: Serving[];

  before(async () => {
    redis = await startRedis([
      ["appendonly", "yes"],
      ["appendfsync", "always"],
    ]);
    upstream = await startMoneyUpstream(password, 50);
    replicas = await Promise.all([start(), start(), start()]);
  });
  after(async () => {
    killSpawned();
    await upstream.close();
    await redis.close();
  });

  const start = () => serveBefore(upstream.url, { REDIS_URL: redis.url });

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
        const sent = replica?.callback(externalId);
        sent?.then(
          (status) => status === 200 && acknowledged.add(externalId),
          () => {},
        );
        if (!killed && performance.now() > killAt) {
          killed = true;
          void replicas.pop()?.kill();
        }
        await delay(10);
      }
    });
    assert.ok(killed);
    console.log(report("one of three killed", run), `${acknowledged.size} callbacks answered 200`);
    assertRejections(run);

    // Two replicas may answer in another order than they stored: no event is known to be the last.
    const missing = new Set(acknowledged);
    const [survivor] = replicas as [Serving];
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
    if (replicas[0]) await read(replicas[0], "first").catch(() => {});
    await delay(1_500);
    Object.assign(upstream.counts, { accepted: 0, rejected: 0 });
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
          ? replica
              .pay(`load-${startAt}-${n}`)
              .then(
                () => payments++,
                () => refusedPayments++,
              )
              .finally(() => {
                slowestPaymentMs = Math.max(slowestPaymentMs, performance.now() - askedAt);
              })
          : read(replica, `payout-${n}`).catch(() => {});
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

/** Makes a look-up that goes to the upstream. */
const read = ({ rpcUrl }: Serving, externalId: string) =>
  clientOf(PayoutService, { rpcUrl }, "Connect").getPayout({ externalId });

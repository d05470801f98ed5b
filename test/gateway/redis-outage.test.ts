import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { Code } from "@connectrpc/connect";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { startSentinelSet } from "../redis/sentinel.ts";
import { withoutRedis } from "../redis/server.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { clientOf, paymentRequest } from "./callers.ts";
import { freePorts, killSpawned, messageOf, spawnCli } from "./spawn.ts";

interface Readiness {
  readonly status: string;
  readonly details?: { readonly redis?: { readonly status: string; readonly since?: string } };
}

describe("an outage of Redis", { skip: withoutRedis }, () => {
  after(killSpawned);

  it("is logged once, shown by /readyz and metrics, and keeps no payment without a key from its way", async (t) => {
    // Sentinel starts no failover within ten minutes, so that killing all servers is one outage.
    const set = await startSentinelSet([], 600_000);
    t.after(() => set.close());
    const gateway = spawnCli(["serve"], { ...freePorts, REDIS_URL: set.url });
    const { admin = "", rpc = "" } = await gateway.ready;
    const payments = clientOf(PaymentService, { rpcUrl: rpc });
    const readiness = async () => {
      const response = await fetch(`${admin}/readyz`);
      assert.equal(response.status, 200, "traffic is not turned away");
      return (await response.json()) as Readiness;
    };
    const metric = async (name: string) => (await scrapeOf({ adminUrl: admin })).value(name, {});
    /** Counts a log message since `sinceMs`: a slow first connection may log it at the start. */
    const told = (message: RegExp, sinceMs: number) =>
      gateway.lines
        .filter((line) => message.test(messageOf(line)))
        .filter((line) => Date.parse(JSON.parse(line).time) >= sinceMs).length;
    await until(async () => (await metric("redis_up")) === 1);
    assert.equal((await readiness()).details?.redis?.status, "up");

    const killedMs = Date.now();
    await Promise.all(set.servers.map((server) => server.kill()));
    await until(async () => (await readiness()).details?.redis?.status === "away");
    const since = Date.parse((await readiness()).details?.redis?.since ?? "");
    assert(since >= killedMs - 5_000 && since <= Date.now());
    assert.equal(await metric("redis_up"), 0);
    await until(async () => ((await metric("redis_away_seconds")) ?? 0) > 2);
    assert.equal((await fetch(`${admin}/healthz`)).status, 200);
    const keyed = { headers: { "idempotency-key": "k" } };
    const refused = payments.createPayment(paymentRequest("keyed"), keyed);
    await assert.rejects(refused, { code: Code.Unavailable });
    // Its share of the budget starts empty, since other gateways may have just spent theirs.
    await until(() => payments.createPayment(paymentRequest("alone")));

    for (const server of set.servers) await server.start();
    await until(async () => (await readiness()).details?.redis?.status === "up");
    assert.equal(await metric("redis_away_seconds"), 0);
    // While Redis is away the reconciler tries again each second or so.
    await until(async () => told(/^reconciliation works again/, killedMs) > 0);
    gateway.child.kill("SIGTERM");
    // The log arrives through a pipe, later than HTTP answers.
    await gateway.exit;
    assert.deepEqual([told(/^Redis is away/, killedMs), told(/^Redis is back/, killedMs)], [1, 1]);
    const away = gateway.lines.filter((line) => messageOf(line).startsWith("Redis is away")).at(-1);
    const { connectionError, accounts } = JSON.parse(away ?? "");
    assert.match(connectionError, /ECONNREFUSED/, "why there is none");
    assert.deepEqual(accounts, ["default"]);
    const rounds = [told(/^reconciliation round failed/, killedMs)];
    assert.deepEqual(rounds.concat(told(/^reconciliation works again/, killedMs)), [1, 1]);
    assert.deepEqual(gateway.errors, [], "standard error");
  });
});

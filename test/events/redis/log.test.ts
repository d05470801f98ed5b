import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { eventLogContract } from "../../contracts/event-log.ts";
import { eventLogModel } from "../../contracts/event-log-model.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { payment, stateOn } from "../entries.ts";
import { redisHarness, replica } from "./rig.ts";

describe("on a single Redis", { skip: withoutRedis }, () => {
  let server: RedisServer;
  before(async () => {
    server = await startRedis();
  });
  after(() => server.close());

  const harness = () => redisHarness(server.url);
  eventLogContract("redis", harness);
  eventLogModel("redis", harness);

  it("derives the facts from states that were stored without facts", async () => {
    const { log, close } = await replica(server.url, { prefix: "older" });
    await log.append("shop", payment({ status: "success", amount: "10.00" }));
    await server.command("HDEL", accountKeys("older", "shop").state("payment", "order-1"), "facts");
    const snapshot = await log.snapshot("shop", EventKind.PAYMENT, "order-1");
    const [fact] = snapshot?.facts.operations ?? [];
    assert.deepEqual([fact?.operation, fact?.status, fact?.amount], ["payment", "success", ""]);
    assert((fact?.atMs ?? 0) > 0);
    const { event } = await log.append("shop", payment({ operation: "lookup", status: "success" }));
    assert.equal(event && stateOn(event), "PAID");
    await close();
  });

  it("keeps each event and the state small after a thousand failed attempts", async () => {
    const { log, close } = await replica(server.url, { prefix: "failures" });
    const keys = accountKeys("failures", "shop");
    const attempts = async (count: number, from: number) => {
      const entries = Array.from({ length: count }, (_, at) =>
        payment({ paymentId: `pay-${from + at}`, status: "failure", amount: "10.00" }),
      );
      for (const entry of entries) await log.append("shop", entry);
    };
    const bytesOf = async (key: string) =>
      (await server.command("MEMORY", "USAGE", key, "SAMPLES", 0)) as number;
    await attempts(100, 0);
    const [stream, state] = [
      await bytesOf(keys.events),
      await bytesOf(keys.state("payment", "order-1")),
    ];
    await attempts(900, 100);
    assert((await bytesOf(keys.events)) < 20 * stream);
    assert((await bytesOf(keys.state("payment", "order-1"))) < 2 * state);
    // An event that also stored a hundred failed attempts would take some 10 kB.
    assert((await bytesOf(keys.events)) < 1_000 * 2_000);
    await close();
  });
});

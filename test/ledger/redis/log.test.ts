import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { accountKeys } from "../../../src/redis/keys.ts";
import { eventLogContract } from "../../contracts/event-log.ts";
import { eventLogModel } from "../../contracts/event-log-model.ts";
import { ofSuite } from "../../of-suite.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { payment } from "../entries.ts";
import { redisHarness, replica } from "./rig.ts";

describe("on a single Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);

  const harness = () => redisHarness(server.url);
  eventLogContract("redis", harness);
  eventLogModel("redis", harness);

  it("dates events by Redis, whatever the machine's clock says, and when it is set", async (t) => {
    const { log, close } = await replica(server.url, { prefix: "dated" });
    const { now } = Date;
    for (const aheadMs of [60_000, 3_600_000, -3_600_000]) {
      t.mock.method(Date, "now", () => now() + aheadMs);
      const { event } = await log.append("shop", payment({ paymentId: `p${aheadMs}` }));
      const [seconds] = (await server.command("TIME")) as [string];
      assert(event?.receivedAt);
      assert(Math.abs(timestampMs(event.receivedAt) - Number(seconds) * 1_000) < 30_000);
    }
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
    const lengthOf = async (key: string) => (await server.command("HSTRLEN", key, "t")) as number;
    await attempts(100, 0);
    const [stream, state] = [
      await bytesOf(keys.events),
      await lengthOf(keys.record("payment:order-1")),
    ];
    await attempts(900, 100);
    assert((await bytesOf(keys.events)) < 20 * stream);
    assert((await lengthOf(keys.record("payment:order-1"))) < 2 * state);
    // An event that also stored a hundred failed attempts would take some 10 kB.
    assert((await bytesOf(keys.events)) < 1_000 * 2_000);
    await close();
  });
});

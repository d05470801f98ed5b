import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { eventLogContract } from "../../contracts/event-log.ts";
import { ofSuite } from "../../of-suite.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { payment } from "../entries.ts";
import { redisHarness, replica } from "./rig.ts";

describe("on a single Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);

  eventLogContract("redis", () => redisHarness(server.url));

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
});

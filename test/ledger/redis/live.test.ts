import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { EventKind, EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { placeOf } from "../../../src/stores/cursor.ts";
import { ofSuite } from "../../of-suite.ts";
import { startRedis, withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { cursors, payment, take } from "../entries.ts";
import { type Replica, reader, replica } from "./rig.ts";

const keys = accountKeys("test", "shop");

describe("live delivery through Redis", { skip: withoutRedis }, () => {
  const server = ofSuite(startRedis);
  let a: Replica;
  let b: Replica;

  beforeEach(async () => {
    await server.command("FLUSHALL");
    [a, b] = await Promise.all([replica(server.url), replica(server.url)]);
  });
  afterEach(async () => {
    await a.close();
    await b.close();
  });

  /** Whether any replica subscribes to the wake-ups of the account. */
  const woken = async () => {
    const [, count] = (await server.command("PUBSUB", "NUMSUB", keys.wakeUp)) as [string, number];
    return count > 0;
  };
  const appendTo = async (log: Ledger, from: number, count: number): Promise<string[]> => {
    const made: string[] = [];
    for (let i = from; i < from + count; i++) {
      const { event } = await log.append("shop", payment({ paymentId: `p-${i}` }));
      made.push(event?.cursor ?? "");
    }
    return made;
  };

  it("delivers each event of any replica once, by wake-ups rather than polling", async () => {
    const readers = [await reader(a.log), await reader(b.log)];
    const made: string[] = [];
    // Polling once a second would take longer than the test may.
    for (let i = 0; i < 100; i++) {
      made.push(...(await appendTo(i % 2 ? a.log : b.log, i, 1)));
      for (const each of readers) await each.sees(i + 1);
    }
    for (const each of readers) {
      assert.deepEqual(cursors(each.seen), made);
      await each.stop();
    }
  });

  it("serves watches of many payments and accounts with one additional connection", async () => {
    const connections = async () =>
      String(await server.command("CLIENT", "LIST"))
        .trim()
        .split("\n").length;
    const before = await connections();
    const ends = new AbortController();
    const { signal } = ends;
    const watches = await Promise.all(
      Array.from({ length: 300 }, (_, i) => {
        const topic = { kind: EventKind.PAYMENT, externalId: `order-${i}` };
        return b.log.read(`account-${i % 10}`, topic, "latest", { signal });
      }),
    );
    assert.equal((await connections()) - before, 1);
    for (const [i, watch] of watches.entries()) {
      const entry = payment({ externalId: `order-${i}`, paymentId: `p-${i}` });
      const { event } = await a.log.append(`account-${i % 10}`, entry);
      assert.deepEqual(cursors(await take(watch, 1)), [event?.cursor]);
    }
    ends.abort();
  });

  it("subscribes to wake-ups only while a replica has a reader", async () => {
    assert.equal(await woken(), false);
    const one = await reader(b.log);
    await until(woken);
    const other = await reader(b.log);
    await one.stop();
    await appendTo(a.log, 0, 1);
    await other.sees(1);
    assert.equal(await woken(), true);
    await other.stop();
    await until(async () => !(await woken()));
    const again = await reader(b.log);
    const made = await appendTo(a.log, 1, 3);
    await again.sees(3);
    assert.deepEqual(cursors(again.seen), made);
    await again.stop();
  });

  it("delivers by polling while wake-ups are forbidden, and uses them once they are allowed", async () => {
    await server.command("ACL", "SETUSER", "mute", "on", ">secret", "~*", "resetchannels", "+@all");
    const url = server.url.replace("redis://", "redis://mute:secret@");
    const [c, d] = [await replica(url), await replica(url)];
    try {
      const one = await reader(d.log);
      const made = await appendTo(c.log, 0, 20);
      await one.sees(20);
      assert.equal(await woken(), false);
      await server.command("ACL", "SETUSER", "mute", "allchannels");
      // A poll finds the event without a wake-up, so the feed subscribes again.
      made.push(...(await appendTo(c.log, 20, 1)));
      await until(woken);
      made.push(...(await appendTo(c.log, 21, 5)));
      await one.sees(26);
      assert.deepEqual(cursors(one.seen), made);
      await one.stop();
    } finally {
      await c.close();
      await d.close();
    }
  });

  it("keeps its cursors in order when the clock of Redis is set back", async () => {
    const one = await reader(b.log);
    const before = await appendTo(a.log, 0, 2);
    // An event that is an hour ahead has the effect of a clock that was set back by an hour.
    const ms = Date.now() + 3_600_000;
    const tail = await server.command("HGET", keys.log, "tail");
    const event = create(EventSchema, { kind: EventKind.PAYMENT, externalId: "ahead" });
    // All these bytes are below 128, so text carries them unchanged.
    const bytes = Buffer.from(toBinary(EventSchema, event)).toString();
    await server.command("XADD", keys.events, `${ms}-7`, "p", String(tail), "e", bytes);
    const ahead = placeOf(ms, 7);
    await server.command("HSET", keys.log, "tail", ahead, "mark", ahead);
    const after = await appendTo(a.log, 2, 3);
    await one.sees(6);
    assert.deepEqual(cursors(one.seen).toSorted(), cursors(one.seen));
    assert.deepEqual(cursors(one.seen).toSpliced(2, 1), [...before, ...after]);
    await one.stop();
  });

  it("dates events by Redis, whatever the machine's clock says, and when it is set", async (t) => {
    const { now } = Date;
    for (const aheadMs of [60_000, 3_600_000, -3_600_000]) {
      t.mock.method(Date, "now", () => now() + aheadMs);
      const { event } = await a.log.append("shop", payment({ paymentId: `p${aheadMs}` }));
      const [seconds] = (await server.command("TIME")) as [string];
      assert(event?.receivedAt);
      assert(Math.abs(timestampMs(event.receivedAt) - Number(seconds) * 1_000) < 30_000);
    }
  });
});

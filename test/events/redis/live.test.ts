import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import type { EventLog } from "../../../src/events/log.ts";
import { EventKind, EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";
import { accountKeys } from "../../../src/redis/keys.ts";
import { type RedisServer, startRedis, withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { cursors, payment, take } from "../entries.ts";
import { type Replica, reader, replica } from "./rig.ts";

const keys = accountKeys("test", "shop");

describe("live delivery through Redis", { skip: withoutRedis, timeout: 30_000 }, () => {
  let server: RedisServer;
  let a: Replica;
  let b: Replica;

  before(async () => {
    server = await startRedis();
  });
  after(() => server.close());
  beforeEach(async () => {
    await server.command("FLUSHALL");
    [a, b] = await Promise.all([replica(server.url), replica(server.url)]);
  });
  afterEach(async () => {
    await a.close();
    await b.close();
  });

  /** Whether any replica is to be woken by events of the account. */
  const woken = async () => {
    const [, count] = (await server.command("PUBSUB", "NUMSUB", keys.wakeUp)) as [string, number];
    return count > 0;
  };
  const appendTo = async (log: EventLog, from: number, count: number): Promise<string[]> => {
    const made: string[] = [];
    for (let i = from; i < from + count; i++) {
      const { event } = await log.append("shop", payment({ paymentId: `p-${i}` }));
      made.push(event?.cursor ?? "");
    }
    return made;
  };

  it("tells each event of any replica once, woken and not by looking now and then", async () => {
    const readers = [await reader(a.log), await reader(b.log)];
    const made: string[] = [];
    // Looking once a second would take longer than the test may.
    for (let i = 0; i < 100; i++) {
      made.push(...(await appendTo(i % 2 ? a.log : b.log, i, 1)));
      for (const each of readers) await each.sees(i + 1);
    }
    for (const each of readers) {
      assert.deepEqual(cursors(each.seen), made);
      await each.stop();
    }
  });

  it("serves watches of many payments and accounts with two connections", async () => {
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

  it("wakes only replicas that have a reader, until they have none", async () => {
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

  it("misses nothing when the connection of the hints is cut again and again", async () => {
    const one = await reader(b.log);
    const made: string[] = [];
    for (let round = 0; round < 5; round++) {
      await until(woken);
      await server.command("CLIENT", "KILL", "TYPE", "pubsub");
      made.push(...(await appendTo(a.log, round * 10, 10)));
      await one.sees(made.length);
    }
    assert.deepEqual(cursors(one.seen), made);
    await one.stop();
  });

  it("stores and delivers where hints are not allowed, and takes them once they are", async () => {
    await server.command("ACL", "SETUSER", "mute", "on", ">secret", "~*", "resetchannels", "+@all");
    const url = server.url.replace("redis://", "redis://mute:secret@");
    const [c, d] = [await replica(url), await replica(url)];
    try {
      const one = await reader(d.log);
      const made = await appendTo(c.log, 0, 20);
      await one.sees(20);
      assert.equal(await woken(), false);
      await server.command("ACL", "SETUSER", "mute", "allchannels");
      // Found by looking: a hint did not come, and is asked for anew.
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

  it("keeps the order of its ids when Redis's clock is set back", async () => {
    const one = await reader(b.log);
    const before = await appendTo(a.log, 0, 2);
    // As seen from a clock that is an hour behind: the last event is an hour ahead.
    const ahead = `${Date.now() + 3_600_000}-7`;
    const tail = await server.command("HGET", keys.log, "tail");
    const event = create(EventSchema, { kind: EventKind.PAYMENT, externalId: "ahead" });
    // Bytes below 128 are the same as text.
    const bytes = Buffer.from(toBinary(EventSchema, event)).toString();
    await server.command("XADD", keys.events, ahead, "p", String(tail), "e", bytes);
    await server.command("HSET", keys.log, "tail", ahead);
    const after = await appendTo(a.log, 2, 3);
    await one.sees(6);
    assert.deepEqual(cursors(one.seen).toSorted(), cursors(one.seen));
    assert.deepEqual(cursors(one.seen).toSpliced(2, 1), [...before, ...after]);
    await one.stop();
  });
});

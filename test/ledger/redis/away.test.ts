import assert from "node:assert/strict";
import { afterEach, describe, it } from "node:test";
import { inspect } from "node:util";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { Entry } from "../../../src/ledger/log.ts";
import type { FeedState } from "../../../src/stores/redis/feed.ts";
import { type RedisServer, type Settings, startRedis, withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { currentStep, cursors, numbered, payment, snapshotOf } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { isAway, isExpired } from "../refusals.ts";
import { type Replica, reader, replica } from "./rig.ts";

const durable: Settings = [
  ["appendonly", "yes"],
  ["appendfsync", "always"],
];
const everything = undefined;
const { signal } = new AbortController();

describe("event log with Redis away", { skip: withoutRedis }, () => {
  const open: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    while (open.length > 0) await open.pop()?.close();
  });

  async function start(settings: Settings = []) {
    const server = await startRedis(settings);
    open.push(server);
    return server;
  }
  async function join(server: RedisServer, states: FeedState[] = []): Promise<Replica> {
    const onFeed = (_: string, state: FeedState) => void states.push(state);
    const joined = await replica(server.url, { onFeed });
    open.push(joined);
    return joined;
  }
  /** Repeats the append until it succeeds, as the service repeats a callback. */
  async function insist(log: Ledger, entry: Entry): Promise<void> {
    await until(async () => {
      await log.append("shop", entry);
      return true;
    });
  }
  async function storeMany(log: Ledger, from: number, to: number): Promise<string[]> {
    const made: string[] = [];
    for (let i = from; i < to; i++) {
      made.push((await log.append("shop", numbered(i))).event?.cursor ?? "");
    }
    return made;
  }

  it("loses no acknowledged event when Redis is killed while callbacks arrive", async () => {
    const server = await start(durable);
    const states: FeedState[] = [];
    const [a, b] = [await join(server), await join(server, states)];
    const live = await reader(b.log);
    const acknowledged = new Set<string>();
    let next = 0;
    let enough = false;
    const writers = Array.from({ length: 8 }, async () => {
      while (!enough) {
        const i = next++;
        await until(async () => {
          const { event } = await a.log.append("shop", numbered(i));
          // No event means a duplicate: the first answer was lost, but its event is stored.
          acknowledged.add(event?.externalId ?? `order-${i}`);
          return true;
        });
      }
    });
    for (let round = 1; round <= 2; round++) {
      await live.sees(round * 200);
      await server.kill();
      await until(async () => states.at(-1) === "away");
      await server.start();
      await until(async () => states.at(-1) === "back");
    }
    enough = true;
    await Promise.all(writers);
    // A slow answer may make the feed report `away` once more.
    assert(states.length >= 4);
    assert.deepEqual(
      states,
      states.map((_, i) => (i % 2 === 0 ? "away" : "back")),
    );
    await live.sees(acknowledged.size);
    const kept = await reader(b.log, "earliest");
    await kept.sees(acknowledged.size);
    assert.deepEqual(cursors(live.seen), cursors(kept.seen), "each once, in order, none left out");
    assert.deepEqual(
      kept.seen.map(({ externalId }) => externalId).toSorted(),
      [...acknowledged].toSorted(),
    );
    await live.stop();
    await kept.stop();
  });

  it("refuses calls in time while Redis is paused, and recovers when it resumes", async () => {
    const server = await start();
    const states: FeedState[] = [];
    const [a, b] = [await join(server), await join(server, states)];
    const live = await reader(b.log);
    const [first] = await storeMany(a.log, 0, 1);
    server.pause();
    await Promise.all([
      assert.rejects(a.log.append("shop", numbered(1)), isAway),
      assert.rejects(snapshotOf(a.log, "shop", EventKind.PAYMENT, "order-0"), isAway),
      assert.rejects(a.log.history("shop", EventKind.PAYMENT, "order-0", 1), isAway),
      assert.rejects(a.log.read("shop", everything, "latest", { signal }), isAway),
      assert.rejects(b.log.read("shop", everything, first ?? "", { signal }), isAway),
      assert.rejects(a.log.letters.addDeadLetter("shop", letter("1")), isAway),
      assert.rejects(lettersOf(a.log, "shop"), isAway),
    ]);
    await until(async () => states.includes("away"));
    server.resume();
    await insist(a.log, numbered(1));
    await insist(a.log, numbered(2));
    await live.sees(3);
    const ids = live.seen.map(({ externalId }) => externalId);
    assert.deepEqual(ids, ["order-0", "order-1", "order-2"]);
    await live.stop();
  });

  it("ends readers, and refuses their cursors, after a flush of Redis", async () => {
    const server = await start();
    const states: FeedState[] = [];
    const [a, b] = [await join(server), await join(server, states)];
    const quiet = await reader(b.log);
    const [before] = await storeMany(a.log, 0, 1);
    await quiet.sees(1);
    await server.command("FLUSHALL");
    assert(isAway(await quiet.ended), "also when nothing is appended any more");
    // A slow answer may have made the feed report `away` before.
    const last = states.filter((state) => state !== "away" && state !== "back");
    assert.deepEqual([last, states.at(-1)], [["lost"], "lost"]);
    await assert.rejects(b.log.read("shop", everything, before ?? "", { signal }), isExpired);

    const empty = await reader(b.log);
    await server.command("FLUSHALL");
    const made = await storeMany(a.log, 1, 3);
    assert(isAway(await empty.ended), "an event of another log is no event of this one");
    await assert.rejects(b.log.read("shop", everything, before ?? "", { signal }), isExpired);
    const fresh = await reader(b.log, "earliest");
    await fresh.sees(2);
    assert.deepEqual(cursors(fresh.seen), made);
    await fresh.stop();
  });

  it("ends readers, and refuses their cursors, when the newest events of the log were lost", async () => {
    // Redis restarts from a snapshot without the newest events, like a replica that lags behind.
    const server = await start();
    const [a, b] = [await join(server), await join(server)];
    const kept = await storeMany(a.log, 0, 2);
    const live = await reader(b.log);
    await server.command("SAVE");
    const lost = await storeMany(a.log, 2, 4);
    await live.sees(2);
    await server.kill();
    await server.start();
    assert(isAway(await live.ended), "without any new event");
    await until(
      async () => (await a.log.history("shop", EventKind.PAYMENT, "order-0", 1)) !== null,
    );
    const resume = (cursor = "") => b.log.read("shop", everything, cursor, { signal });
    await assert.rejects(resume(lost[1]), isExpired);

    const resumed = await reader(b.log, kept[0]);
    const after = await storeMany(a.log, 2, 6);
    for (const cursor of lost) await assert.rejects(resume(cursor), isExpired);
    await resumed.sees(5);
    assert.deepEqual(cursors(resumed.seen), [kept[1], ...after]);
    await resumed.stop();
  });

  it("stores an event completely or not at all while Redis is out of memory", async () => {
    const server = await start([["maxmemory-policy", "noeviction"]]);
    const { log } = await join(server);
    await server.command("CONFIG", "SET", "maxmemory", "4mb");
    const stored: string[] = [];
    let refused = 0;
    const bulky = (i: number) =>
      payment({ externalId: `order-${i}`, paymentId: `p-${i}`, statusCode: "x".repeat(20_000) });
    for (let i = 0; i < 300; i++) {
      // A time-out is no refusal: the event may be stored, so the append is repeated.
      await until(async () => {
        try {
          await log.append("shop", bulky(i));
          stored.push(`order-${i}`);
        } catch (error) {
          assert(isAway(error));
          if (!/OOM/.test(inspect(error, { depth: 10 }))) return false;
          refused++;
        }
        return true;
      });
    }
    assert(stored.length > 0 && refused > 0, `${stored.length} stored, ${refused} refused`);
    await server.command("CONFIG", "SET", "maxmemory", "0");
    for (let i = 0; i < 300; i++) {
      const isStored = stored.includes(`order-${i}`);
      const snapshot = await snapshotOf(log, "shop", EventKind.PAYMENT, `order-${i}`);
      assert.equal(snapshot !== undefined, isStored);
      const { outcome } = await log.append("shop", bulky(i));
      assert.equal(outcome, isStored ? "duplicate" : "stored");
    }
    const all = await reader(log, "earliest");
    await all.sees(300);
    await all.stop();
  });

  it("reveals nothing of an event or dead letter in the error when it cannot store it", async () => {
    const server = await start();
    const { log } = await join(server);
    await server.command("REPLICAOF", "127.0.0.1", "1");
    const entry = payment({ externalId: "canary-in-the-event", statusCode: "canary" });
    for (const attempt of [
      () => log.append("shop", entry),
      () => log.letters.addDeadLetter("shop", letter("canary")),
    ]) {
      const errors: unknown[] = [];
      // The refusal closes the connection to look for another master; attempts until then fail.
      await until(async () => {
        errors.push(
          await attempt().then(
            () => "stored",
            (error: unknown) => error,
          ),
        );
        return /READONLY/.test(inspect(errors.at(-1), { depth: 10 }));
      });
      assert.doesNotMatch(inspect(errors, { depth: 10, showHidden: true }), /canary|stored/);
    }
  });

  it("drops events that are past the retention while others come", async () => {
    const server = await start();
    const { log, close } = await replica(server.url, { retentionMs: 500 });
    open.push({ close });
    await storeMany(log, 0, 300);
    let next = 300;
    await until(async () => {
      await storeMany(log, next, ++next);
      return ((await server.command("XLEN", "test:{shop}:events")) as number) < 200;
    });
  });

  /** How long the ledger keeps what, and that kernels do so: memory/log.test.ts, contracts/kernel.ts. */
  it("leaves nothing but the log's place once events and states have expired", async () => {
    const server = await start();
    const { log, close } = await replica(server.url, { retentionMs: 500 });
    open.push({ close });
    const first = (await log.append("shop", payment({ status: "success" }))).event?.cursor ?? "";
    await log.append("shop", payment({ operation: "refund" }));
    const history = () => log.history("shop", EventKind.PAYMENT, "order-1", 10);
    await until(async () => (await history()).length === 0);
    // The stream of all events may stay a tenth of a second longer.
    await until(() => log.read("shop", everything, first, { signal }).then(() => false, isExpired));
    await until(async () => (await currentStep(log)) === undefined);
    const keys = async () => (await server.command("KEYS", "*")) as string[];
    await until(async () => (await keys()).join() === "test:{shop}:log");
  });
});

import assert from "node:assert/strict";
import { beforeEach, describe, it, type TestContext } from "node:test";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { closing, ofSuite } from "../../of-suite.ts";
import { addReplica, ownerOf, startCluster } from "../../redis/cluster.ts";
import { startSentinelSet } from "../../redis/sentinel.ts";
import { startReplicated, withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { cursors, numbered, snapshotOf } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { isAway, isExpired } from "../refusals.ts";
import { reader, replica } from "./rig.ts";

const everything = undefined;
const { signal } = new AbortController();

describe("an event in a log that waits for replicas", {
  skip: withoutRedis,
}, () => {
  const set = ofSuite(startReplicated);
  beforeEach(() => set.primary.command("FLUSHALL"));

  async function open(t: TestContext, minReplicas: number | "all" = 1) {
    const opened = closing(t, await replica(set.primary.url, { minReplicas }));
    if (minReplicas === 0) return opened;
    // Its connection for writes is open once one was answered.
    await until(() => opened.log.append("first", numbered(0)).then(Boolean, () => false));
    return opened;
  }
  const historyOf = async (log: Awaited<ReturnType<typeof open>>["log"], i: number) =>
    await log.history("shop", EventKind.PAYMENT, `order-${i}`, 10);

  it("is acknowledged among many of several accounts, all of which a replica holds", async (t) => {
    const { log } = await open(t);
    const live = await reader(log);
    const appended = await Promise.all(
      Array.from({ length: 500 }, (_, i) => log.append(i % 5 ? "shop" : "other", numbered(i))),
    );
    assert(appended.every(({ outcome }) => outcome === "stored"));
    await live.sees(400);
    assert.deepEqual(cursors(live.seen).toSorted(), cursors(live.seen));
    await live.stop();
    for (let times = 0; times < 2; times++) await log.letters.addDeadLetter("shop", letter("l"));
    assert.equal((await lettersOf(log, "shop")).length, 1);
  });

  it("is neither acknowledged nor shown until a replica holds it, and then shown once", async (t) => {
    const [one, peer] = [await open(t), await open(t)];
    await one.log.append("shop", numbered(0));
    const live = await reader(peer.log, "earliest");
    await live.sees(1);
    set.replica.pause();
    try {
      let waits = true;
      const refused = assert.rejects(one.log.append("shop", numbered(1)), isAway).finally(() => {
        waits = false;
      });
      assert(await snapshotOf(one.log, "shop", EventKind.PAYMENT, "order-0"), "others are shown");
      const late = await reader(peer.log, "earliest");
      await late.sees(1);
      assert(waits, "reads do not wait behind it");
      await refused;
      // A repeat is no acknowledgement while only the primary holds the first. A new connection has
      // made no write that the replica lacks, and must refuse it too.
      const fresh = closing(t, await replica(set.primary.url, { minReplicas: 1 }));
      for (const { log } of [one, fresh]) {
        await assert.rejects(log.append("shop", numbered(1)), isAway);
        await assert.rejects(log.letters.addDeadLetter("shop", letter("new")), isAway);
      }
      assert.deepEqual(await historyOf(peer.log, 1), []);
      await assert.rejects(snapshotOf(peer.log, "shop", EventKind.PAYMENT, "order-1"), isAway);
      const before = await peer.log.cursorBefore("shop", 1);
      assert(before < (live.seen[0]?.cursor ?? ""), "nor counted");
      const stored = await set.primary.command("XLEN", "test:{shop}:events");
      assert.equal(stored, 2, "the control: it is stored");
      assert.deepEqual([live.seen.length, late.seen.length], [1, 1]);
      await late.stop();
    } finally {
      set.replica.resume();
    }
    // The replica holds it now: a reader's feed shows it, even if it is not sent again.
    await live.sees(2);
    assert.equal((await one.log.append("shop", numbered(1))).outcome, "duplicate");
    await one.log.letters.addDeadLetter("shop", letter("new"));
    const all = await reader(one.log, "earliest");
    await all.sees(2);
    assert.deepEqual(cursors(all.seen), cursors(live.seen));
    assert.deepEqual(cursors(await historyOf(one.log, 1)), cursors(live.seen).slice(1));
    await Promise.all([live.stop(), all.stop()]);
  });

  it("is shown at once if the log waits for no replica", async (t) => {
    const { log } = await open(t, 0);
    set.replica.pause();
    t.after(() => set.replica.resume());
    const live = await reader(log);
    await log.append("shop", numbered(0));
    await live.sees(1);
    await live.stop();
  });
});

describe("a cursor that is not in the log", { skip: withoutRedis }, () => {
  it("is refused as expired only by the primary that most Sentinels name", async (t) => {
    const set = closing(t, await startSentinelSet());
    const { log } = closing(t, await replica(set.url));
    const { event } = await log.append("shop", numbered(0));
    const kept = event?.cursor ?? "";
    const unknown = kept.replace(/^(.{12}).{6}/, "$1ffffff");
    const resume = (cursor: string) => log.read("shop", everything, cursor, { signal });
    const isRefused = () => resume(unknown).then(() => false, isExpired);
    // The connection that confirms it has to be opened first.
    await until(isRefused);
    const [, ...others] = set.sentinels;
    for (const sentinel of others) sentinel.pause();
    try {
      // What they said last counts for a second. Then it may be in the log of another primary.
      await until(() => resume(unknown).then(() => false, isAway));
      await assert.rejects(resume(unknown), isAway);
      await resume(kept);
    } finally {
      for (const sentinel of others) sentinel.resume();
    }
    await until(isRefused);
  });

  it("is refused as expired only by a node of a cluster whose replicas hold what it has", async (t) => {
    const cluster = closing(t, await startCluster());
    const owner = await ownerOf(cluster, "test:{shop}:log");
    const standby = closing(t, await addReplica(cluster, owner));
    const { log } = closing(t, await replica(cluster.url));
    await until(async () => (await log.append("shop", numbered(0))).outcome !== undefined);
    const { event } = await log.append("shop", numbered(1));
    const unknown = (event?.cursor ?? "").replace(/^(.{12}).{6}/, "$1ffffff");
    const resume = () => log.read("shop", everything, unknown, { signal });
    const isRefused = () => resume().then(() => false, isExpired);
    await until(isRefused);
    standby.pause();
    try {
      // A write that the replica lacks, as of a node that its replica has replaced.
      await cluster.nodes[owner]?.command("SET", "{shop}", "later");
      await assert.rejects(resume(), isAway);
    } finally {
      standby.resume();
    }
    await until(isRefused);
  });
});

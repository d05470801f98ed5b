import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { ofSuite } from "../../of-suite.ts";
import { startReplicated, withoutRedis } from "../../redis/server.ts";
import { until } from "../../until.ts";
import { cursors, numbered } from "../entries.ts";
import { letter, lettersOf } from "../letters.ts";
import { isAway } from "../refusals.ts";
import { type Replica, reader, replica } from "./rig.ts";

describe("event log that waits for a replica", { skip: withoutRedis, timeout: 60_000 }, () => {
  const set = ofSuite(startReplicated);
  let one: Replica;

  beforeEach(async () => {
    await set.primary.command("FLUSHALL");
    one = await replica(set.primary.url, { minReplicas: 1 });
    // Its connection for writes is open once one was answered.
    await until(() => one.log.append("first", numbered(0)).then(Boolean, () => false));
  });
  afterEach(() => one.close());

  it("acknowledges many concurrent events of several accounts that a replica holds", async () => {
    const live = await reader(one.log);
    const appended = await Promise.all(
      Array.from({ length: 500 }, (_, i) => one.log.append(i % 5 ? "shop" : "other", numbered(i))),
    );
    assert(appended.every(({ outcome }) => outcome === "stored"));
    await live.sees(400);
    assert.deepEqual(cursors(live.seen).toSorted(), cursors(live.seen));
    await live.stop();
    await one.log.letters.addDeadLetter("shop", letter("l"));
    await one.log.letters.addDeadLetter("shop", letter("l"));
    assert.equal((await lettersOf(one.log, "shop")).length, 1);
  });

  it("acknowledges nothing, not even a repeat, while the replica does not answer", async () => {
    await one.log.append("shop", numbered(0));
    await one.log.letters.addDeadLetter("shop", letter("known"));
    set.replica.pause();
    try {
      await assert.rejects(one.log.append("shop", numbered(1)), isAway);
      // Only the master holds it: the answer `duplicate` would acknowledge it.
      await assert.rejects(one.log.append("shop", numbered(1)), isAway);
      await assert.rejects(one.log.letters.addDeadLetter("shop", letter("new")), isAway);
      await assert.rejects(one.log.letters.addDeadLetter("shop", letter("new")), isAway);
      const unwaiting = await replica(set.primary.url);
      assert.equal((await unwaiting.log.append("shop", numbered(1))).outcome, "duplicate");
      await unwaiting.close();
      // A new connection has made no write that the replica lacks, and must refuse it too.
      const fresh = await replica(set.primary.url, { minReplicas: 1 });
      await assert.rejects(fresh.log.append("shop", numbered(1)), isAway);
      await fresh.close();
    } finally {
      set.replica.resume();
    }
    assert.equal((await one.log.append("shop", numbered(1))).outcome, "duplicate");
    await one.log.letters.addDeadLetter("shop", letter("new"));
  });

  it("does not delay reads while an append waits for a replica", async () => {
    await one.log.append("shop", numbered(0));
    set.replica.pause();
    try {
      let waiting = true;
      const append = one.log.append("shop", numbered(1)).finally(() => {
        waiting = false;
      });
      append.catch(() => {});
      const live = await reader(one.log, "earliest");
      await live.sees(1);
      assert(await one.log.snapshot("shop", EventKind.PAYMENT, "order-0"));
      assert(waiting);
      await live.stop();
      await assert.rejects(append, isAway);
    } finally {
      set.replica.resume();
    }
  });
});

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { cursors, payment, take } from "../ledger/entries.ts";
import { letter, lettersOf } from "../ledger/letters.ts";
import { isExpired } from "../ledger/refusals.ts";
import { testDeadLetters } from "./event-log/letters.ts";
import { testLists } from "./event-log/lists.ts";
import { testReads } from "./event-log/reads.ts";
import { testRecords } from "./event-log/records.ts";
import { account, type EventLogHarness, everything, LogRig } from "./event-log/rig.ts";

/**
 * Tests what every store owes the ledger: records, readers, lists. What the ledger decides is the
 * same on all of them, and tested once: test/ledger/decisions.test.ts.
 */
export function eventLogContract(name: string, create: () => Promise<EventLogHarness>): void {
  describe(`event log contract: ${name}`, { timeout: 120_000 }, () => {
    const rig = new LogRig();
    beforeEach(() => rig.begin(create));
    afterEach(() => rig.end());

    testRecords(rig);
    testReads(rig);
    testLists(rig);
    testDeadLetters(rig);

    it("keeps accounts apart", async () => {
      const mine = await rig.read(everything, "latest");
      const entry = payment({ status: "success" });
      const { outcome, event } = await rig.log.append("other", entry);
      assert.equal(outcome, "stored");
      assert.equal(await rig.snapshotOf(), undefined);
      assert.deepEqual(await rig.log.history(account, EventKind.PAYMENT, "order-1", 10), []);
      const same = await rig.stored(entry);
      assert.deepEqual(cursors(await take(mine, 1)), [same.cursor]);
      await assert.rejects(rig.read(everything, event?.cursor ?? ""), isExpired);
      await rig.log.letters.addDeadLetter("other", letter("l-1"));
      assert.deepEqual(await lettersOf(rig.log, account), []);
      await rig.log.letters.removeDeadLetter(account, "l-1");
      assert.equal((await lettersOf(rig.log, "other")).length, 1);
    });
  });
}

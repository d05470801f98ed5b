import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { cursors, payment, take } from "../ledger/entries.ts";
import { lettersOf } from "../ledger/letters.ts";
import { testDeadLetters } from "./event-log/letters.ts";
import { testLists } from "./event-log/lists.ts";
import { testReads } from "./event-log/reads.ts";
import { testRecords } from "./event-log/records.ts";
import {
  account,
  type EventLogHarness,
  everything,
  LogRig,
  letter,
  order1,
} from "./event-log/rig.ts";

/**
 * Tests what every store owes the ledger: order, cursors, readers, lists. What the ledger decides is
 * the same on all of them, and tested once: test/ledger/decisions.test.ts.
 * @param ofReaders also what src/ledger/tail.ts does for slow and many readers, the same on all
 */
export function eventLogContract(
  name: string,
  create: () => Promise<EventLogHarness>,
  ofReaders = false,
): void {
  describe(`event log contract: ${name}`, { timeout: 120_000 }, () => {
    const rig = new LogRig();
    beforeEach(() => rig.begin(create));
    afterEach(() => rig.end());

    testRecords(rig);
    testReads(rig);
    if (ofReaders) testReaders(rig);
    testAccounts(rig);
    testLists(rig);
    testDeadLetters(rig);
  });
}

function testReaders(rig: LogRig): void {
  const { read, stored, storeMany } = rig;

  describe("slow readers, and many", () => {
    it("are cut off at 1,000 unread events and lose nothing when they resume", async () => {
      const slow = (await read(everything, "latest"))[Symbol.asyncIterator]();
      const fast = await read(everything, "latest");
      const [first] = await storeMany(1);
      assert.equal((await slow.next()).value?.cursor, first?.cursor);
      const rest = take(fast, 1_201);
      const made = [first, ...(await storeMany(1_200, 1))].filter((event) => event !== undefined);
      assert.deepEqual(cursors(await rest), cursors(made), "other readers see all");

      let resumeCursor: string | undefined;
      await assert.rejects(slow.next(), (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.code, "RESOURCE_EXHAUSTED");
        assert.equal(error.details.reason, "SLOW_CONSUMER");
        resumeCursor = error.details.resumeCursor;
        return true;
      });
      assert.equal(resumeCursor, first?.cursor);
      assert.equal((await slow.next()).done, true);
      const resumed = await take(await read(everything, resumeCursor ?? ""), 1_200);
      assert.deepEqual(cursors(resumed), cursors(made.slice(1)));
    });

    it("serves five hundred readers the same events in the same order", async () => {
      const readers = await Promise.all(
        Array.from({ length: 500 }, (_, i) => read(i % 2 ? order1 : everything, "latest")),
      );
      const made: Event[] = [];
      for (let i = 0; i < 20; i++) made.push(await stored(payment({ paymentId: `p-${i}` })));
      for (const seen of await Promise.all(readers.map((events) => take(events, 20)))) {
        assert.deepEqual(cursors(seen), cursors(made));
      }
    });
  });
}

function testAccounts(rig: LogRig): void {
  const { read, stored, snapshotOf } = rig;

  describe("accounts", () => {
    it("see nothing of each other", async () => {
      const mine = await read(everything, "latest");
      const entry = payment({ status: "success" });
      assert.equal((await rig.log.append("other", entry)).outcome, "stored");
      assert.equal(await snapshotOf(), undefined);
      assert.deepEqual(await rig.log.history(account, EventKind.PAYMENT, "order-1", 10), []);
      const same = await stored(entry);
      assert.deepEqual(cursors(await take(mine, 1)), [same.cursor]);
      await rig.log.letters.addDeadLetter("other", letter("l-1"));
      assert.deepEqual(await lettersOf(rig.log, account), []);
      await rig.log.letters.removeDeadLetter(account, "l-1");
      assert.equal((await lettersOf(rig.log, "other")).length, 1);
    });
  });
}

import { afterEach, beforeEach, describe } from "node:test";
import { testDeadLetters } from "./event-log/letters.ts";
import { testLists } from "./event-log/lists.ts";
import { testReads } from "./event-log/reads.ts";
import { testRecords } from "./event-log/records.ts";
import { type EventLogHarness, LogRig } from "./event-log/rig.ts";

/**
 * Tests what every store owes the ledger: records, readers, lists. What the ledger decides is the
 * same on all of them, and tested once: test/ledger/decisions.test.ts.
 */
export function eventLogContract(name: string, create: () => Promise<EventLogHarness>): void {
  describe(`event log contract: ${name}`, () => {
    const rig = new LogRig();
    beforeEach(() => rig.begin(create));
    afterEach(() => rig.end());

    testRecords(rig);
    testReads(rig);
    testLists(rig);
    testDeadLetters(rig);
  });
}

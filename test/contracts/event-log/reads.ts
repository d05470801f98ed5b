import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Topic } from "../../../src/ledger/log.ts";
import { currentStep, cursors, payment, payout, take, takeUntil } from "../../ledger/entries.ts";
import { hasCode } from "../../ledger/refusals.ts";
import { account, everything, type LogRig, order1 } from "./rig.ts";

/**
 * Where a read may begin, and what it yields. How stored and live events follow each other is the
 * same on all stores: test/ledger/tail.test.ts.
 */
export function testReads(rig: LogRig): void {
  const { read, append, stored, storeMany, snapshotOf } = rig;

  describe("read", () => {
    it("has no gap and no repeat wherever a concurrent writer appends", async () => {
      for (let round = 0; round < 21; round++) {
        const externalId = `race-${round}`;
        const topic: Topic = { kind: EventKind.PAYMENT, externalId };
        const made: Event[] = [];
        const write = async (i: number) => {
          made.push(
            await stored(payment({ externalId, paymentId: `${externalId}-${i}` }), rig.peer),
          );
        };
        await write(0);
        const writer = (async () => {
          for (let i = 1; i <= 20; i++) {
            await write(i);
            for (let turn = 0; turn < round % 7; turn++) await Promise.resolve();
          }
        })();
        for (let turn = 0; turn < round; turn++) await Promise.resolve();
        const snapshot = await snapshotOf(externalId);
        assert(snapshot);
        const known = snapshot.operations.map(({ event }) => event);
        const rest = await take(await read(topic, snapshot.cursor), 21 - known.length);
        await writer;
        assert.deepEqual(cursors([...known, ...rest]), cursors(made));
      }
    });

    it("continues from a snapshot whose events have expired", async () => {
      await stored(payment({ status: "success" }));
      await storeMany(2);
      await rig.expire(account);
      const snapshot = await snapshotOf();
      assert(snapshot, "the state outlives the events");
      assert.equal(await currentStep(rig.log), "payment:success");
      const events = await read(order1, snapshot.cursor);
      const refund = await stored(payment({ operation: "refund" }));
      assert.deepEqual(cursors(await take(events, 1)), [refund.cursor]);
    });

    it("yields all events of a payment that has more than a page of them", async () => {
      const made = cursors(await storeMany(600, 0, (name) => ({ statusCode: name })));
      for (const [start, expected] of [
        ["earliest", made],
        [made[0] ?? "", made.slice(1)],
        [made[343] ?? "", made.slice(344)],
      ] as const) {
        const events = await read(order1, start);
        const { cursor: last } = await stored(payment({ statusCode: `behind ${start}` }));
        const seen = cursors(await takeUntil(events, (event) => event.cursor === last));
        assert.deepEqual(seen.slice(0, expected.length), expected);
      }
    });

    it("yields only the requested kinds, stored and live", async () => {
      const early = await stored(payout());
      // So many that a whole page has none of the kind.
      const between = 600;
      await storeMany(between);
      const behind = await stored(payout({ externalId: "payout-2", transactionId: "tx-2" }));
      const all = await read(everything, "earliest");
      const payouts = await read({ kinds: [EventKind.PAYOUT] }, "earliest");
      await stored(payment());
      const late = await stored(payout({ status: "success" }));
      const seen = await takeUntil(payouts, ({ cursor }) => cursor === late.cursor);
      assert.deepEqual(cursors(seen), [early.cursor, behind.cursor, late.cursor]);
      const kinds = (await take(all, between + 4)).map(({ kind }) => kind);
      assert.equal(kinds.filter((kind) => kind === EventKind.PAYOUT).length, 3);
    });

    it("ends when the log is closed", async () => {
      const next = (await read(order1, "latest"))[Symbol.asyncIterator]().next();
      await rig.log.close();
      await assert.rejects(next, hasCode("UNAVAILABLE"));
      await assert.rejects(append(payment()), hasCode("UNAVAILABLE"));
      await assert.rejects(read(order1, "latest"), hasCode("UNAVAILABLE"));
    });
  });
}

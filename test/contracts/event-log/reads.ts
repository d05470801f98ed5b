import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/errors.ts";
import { type Event, EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Topic } from "../../../src/ledger/log.ts";
import { newEpoch } from "../../../src/stores/cursor.ts";
import { cursors, payment, payout, take, takeUntil } from "../../ledger/entries.ts";
import { account, everything, hasCode, type LogRig, order1 } from "./rig.ts";

/** How stored and live events follow each other, and where a read may begin. */
export function testReads(rig: LogRig): void {
  const { read, append, stored, storeMany, snapshotOf, currentStep } = rig;

  describe("snapshot, then live", () => {
    it("yields an event between the snapshot and the read exactly once", async () => {
      await stored(payment({ status: "init" }));
      const snapshot = await snapshotOf();
      assert(snapshot);
      const between = await stored(payment({ status: "pending" }));
      const events = await read(order1, snapshot.cursor);
      const after = await stored(payment({ status: "success" }));
      assert.deepEqual(cursors(await take(events, 2)), [between.cursor, after.cursor]);
    });

    it("yields it exactly once also when the read is opened before the snapshot", async () => {
      await stored(payment({ status: "init" }));
      const events = await read(order1, "latest");
      const between = await stored(payment({ status: "pending" }));
      const snapshot = await snapshotOf();
      assert.equal(snapshot?.cursor, between.cursor);
      const after = await stored(payment({ status: "success" }));
      const [first, second] = await take(events, 2);
      assert.equal(first?.cursor, snapshot?.cursor);
      assert.equal(second?.cursor, after.cursor);
    });

    it("has no gap and no repeat wherever a concurrent writer appends", async () => {
      for (let round = 0; round < 60; round++) {
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
        const known = snapshot.states.map(({ event }) => event);
        const rest = await take(await read(topic, snapshot.cursor), 21 - known.length);
        await writer;
        assert.deepEqual(cursors([...known, ...rest]), cursors(made));
      }
    });

    it("gives a cursor to read on from even when the events of the snapshot have expired", async () => {
      await stored(payment({ status: "success" }));
      await storeMany(2);
      await rig.expire(account);
      const snapshot = await snapshotOf();
      assert(snapshot, "the state outlives the events");
      assert.equal(await currentStep(), "payment:success");
      const events = await read(order1, snapshot.cursor);
      const refund = await stored(payment({ operation: "refund" }));
      assert.deepEqual(cursors(await take(events, 1)), [refund.cursor]);
    });
  });

  describe("read", () => {
    it("continues after any cursor, through stored events into live ones", async () => {
      const before = await storeMany(600);
      for (const at of [0, 1, 255, 256, 257, 599]) {
        const events = await read(everything, before[at]?.cursor ?? "");
        const rest = await take(events, 599 - at);
        assert.deepEqual(cursors(rest), cursors(before.slice(at + 1)));
      }
      const events = await read(everything, before[299]?.cursor ?? "");
      const after = await storeMany(20, 600);
      assert.deepEqual(cursors(await take(events, 320)), cursors([...before.slice(300), ...after]));
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

    it("resumes in another process with the cursor of the first", async () => {
      const events = await storeMany(10);
      const resumed = await read(everything, events[4]?.cursor ?? "", { by: rig.peer });
      assert.deepEqual(cursors(await take(resumed, 5)), cursors(events.slice(5)));
      const next = await stored(payment());
      assert.deepEqual(cursors(await take(resumed, 1)), [next.cursor]);
    });

    it("starts from now with latest, fixed when the promise resolves", async () => {
      await stored(payment({ status: "init" }));
      const events = await read(order1, "latest");
      const next = await stored(payment({ status: "pending" }));
      await storeMany(5);
      const last = await stored(payment({ status: "success" }));
      assert.deepEqual(cursors(await take(events, 2)), [next.cursor, last.cursor]);
    });

    it("delivers to a reader that already waits, in any process", async () => {
      const readers = [rig.log, rig.peer].map(async (by) =>
        take(await read(order1, "latest", { by }), 1),
      );
      // The first appends may come before both readers are attached.
      const end = new AbortController();
      const pending = Promise.all(readers).finally(() => end.abort());
      for (let i = 0; !end.signal.aborted && i < 1_000; i++) {
        await append(payment({ paymentId: `p-${i}` }));
        await new Promise((resolve) => setImmediate(resolve));
      }
      const [[mine], [theirs]] = (await pending) as [Event[], Event[]];
      assert.equal(mine?.externalId, "order-1");
      assert.equal(theirs?.externalId, "order-1");
    });

    it("starts with the oldest kept event with earliest, also in an empty log", async () => {
      const events = await read(everything, "earliest");
      const first = await stored(payment());
      assert.deepEqual(cursors(await take(events, 1)), [first.cursor]);
    });

    it("returns the cursor after which the newest events come, in any process", async () => {
      const empty = await rig.log.cursorBefore(account, 3);
      const events = cursors(await storeMany(5));
      const behind = async (after: string, count: number) =>
        cursors(await take(await read(everything, after), count));
      assert.deepEqual(await behind(empty, 5), events);
      assert.deepEqual(await behind(await rig.peer.cursorBefore(account, 2), 2), events.slice(3));
      for (const count of [5, 9]) {
        assert.deepEqual(await behind(await rig.log.cursorBefore(account, count), 5), events);
      }
      const end = await rig.peer.cursorBefore(account, 0);
      const next = await stored(payment({ paymentId: "next" }));
      assert.deepEqual(await behind(end, 1), [next.cursor]);
    });

    it("yields only the requested payment or payout", async () => {
      const topic: Topic = { kind: EventKind.PAYOUT, externalId: "order-1" };
      const events = await read(topic, "latest");
      await stored(payment());
      await stored(payout({ externalId: "order-11", transactionId: "tx-11" }));
      const mine = await stored(payout({ externalId: "order-1" }));
      assert.deepEqual(cursors(await take(events, 1)), [mine.cursor]);
      assert.deepEqual(cursors(await take(await read(topic, "earliest"), 1)), [mine.cursor]);
    });

    it("yields only the requested kinds, stored and live", async () => {
      const early = await stored(payout());
      // More than a rig.log scans for one page.
      const between = 4_200;
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

    it("reports the cursor to resume from when it ends before it yielded anything", async () => {
      await storeMany(3);
      const caller = new AbortController();
      const events = await read(everything, "latest", { signal: caller.signal });
      const missed = await stored(payment());
      caller.abort();
      let resumeCursor: string | undefined;
      await assert.rejects(take(events, 1), (error: unknown) => {
        assert(error instanceof GatewayError);
        assert.equal(error.code, "CANCELLED");
        resumeCursor = error.details.resumeCursor;
        return true;
      });
      const resumed = await read(everything, resumeCursor ?? "");
      assert.deepEqual(cursors(await take(resumed, 1)), [missed.cursor]);
    });

    it("ends reads that wait when the log is closed", async () => {
      const next = (await read(order1, "latest"))[Symbol.asyncIterator]().next();
      await rig.log.close();
      await assert.rejects(next, hasCode("UNAVAILABLE"));
      await assert.rejects(append(payment()), hasCode("UNAVAILABLE"));
      await assert.rejects(read(order1, "latest"), hasCode("UNAVAILABLE"));
    });
  });

  describe("cursors that cannot be resumed from", () => {
    const isExpired = (error: unknown) =>
      error instanceof GatewayError &&
      error.code === "OUT_OF_RANGE" &&
      error.details.reason === "CURSOR_EXPIRED";

    for (const text of ["", "0", "now", "not-a-cursor", "1732147200000-0", "9".repeat(500), "ä"]) {
      it(`refuses ${JSON.stringify(text.slice(0, 20))}, which is not a cursor`, async () => {
        await stored(payment());
        await assert.rejects(read(order1, text), (error: unknown) => {
          assert(error instanceof GatewayError);
          assert.equal(error.code, "INVALID_ARGUMENT");
          assert.deepEqual(
            error.details.fields?.map(({ path }) => path),
            ["after_cursor"],
          );
          return true;
        });
      });
    }

    it("refuses one that is ahead of the log", async () => {
      const { cursor } = await stored(payment());
      const ahead = cursor.replace(/^0/, "1");
      assert(ahead > cursor);
      await assert.rejects(read(everything, ahead), isExpired);
      assert(await read(everything, cursor), "the control");
    });

    it("refuses one of a log that was lost", async () => {
      const { cursor } = await stored(payment());
      const [place, epoch] = cursor.split("-");
      const lost = newEpoch();
      assert.notEqual(lost, epoch);
      await assert.rejects(read(everything, `${place}-${lost}`), isExpired);
    });

    it("refuses one of another account", async () => {
      const { cursor } = await stored(payment());
      const { event } = await rig.log.append("other", payment());
      await assert.rejects(read(everything, cursor, { of: "other" }), isExpired);
      await assert.rejects(read(everything, event?.cursor ?? ""), isExpired);
    });

    it("refuses one that is older than what is kept", async () => {
      const [first] = await storeMany(3);
      await rig.expire(account);
      await storeMany(1, 3);
      await assert.rejects(read(everything, first?.cursor ?? ""), isExpired);
      const kept = await take(await read(everything, "earliest"), 1);
      assert.equal(kept[0]?.externalId, "many-3");
    });

    it("fails for a slow reader of stored events rather than skip expired ones", async () => {
      const made = await storeMany(1_000);
      const events = (await read(everything, "earliest"))[Symbol.asyncIterator]();
      const seen: Event[] = [(await events.next()).value];
      // The reader's live buffer overflows, so that it has to read from the store alone.
      made.push(...(await storeMany(1_001, 1_000)));
      await rig.expire(account);
      await storeMany(1, 3_000);
      const rest = async () => {
        for (let next = await events.next(); !next.done; next = await events.next()) {
          seen.push(next.value);
        }
      };
      await assert.rejects(rest(), isExpired);
      assert.deepEqual(cursors(seen), cursors(made.slice(0, seen.length)));
      assert(seen.length < made.length);
    });
  });
}

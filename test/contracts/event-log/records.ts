import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type Event, EventKind, EventSource } from "../../../src/gen/payments/v1/event_pb.ts";
import type { Entry } from "../../../src/ledger/log.ts";
import { payment, stateOn, step, take } from "../../ledger/entries.ts";
import { account, everything, type LogRig } from "./rig.ts";

/** What is stored of an entry, and is the same for whoever reads it. */
export function testRecords(rig: LogRig): void {
  const { read, append, stored } = rig;

  describe("append", () => {
    it("returns the stored event with its cursor and the time it was received", async () => {
      const entry = payment({ status: "success" });
      const event = await stored(entry);
      assert.match(event.cursor, /^[\x21-\x7e]+$/);
      assert.equal(event.kind, EventKind.PAYMENT);
      assert.equal(event.externalId, "order-1");
      assert.equal(event.paymentId, "pay-1");
      assert.equal(event.source, EventSource.CALLBACK);
      assert.equal(event.final, true);
      assert.equal(step(event), "payment:success");
      assert(event.receivedAt && event.receivedAt.seconds > 0n);
      assert.equal(entry.event.cursor, "", "the writer's own message stays as it is");
      assert.equal(entry.event.receivedAt, undefined);
    });

    it("stores one of a hundred identical concurrent callbacks", async () => {
      const answers = await Promise.all(
        Array.from({ length: 100 }, (_, i) => append(payment(), i % 2 ? rig.peer : rig.log)),
      );
      assert.equal(answers.filter(({ outcome }) => outcome === "stored").length, 1);
      const history = await rig.log.history(account, EventKind.PAYMENT, "order-1", 10);
      assert.equal(history.length, 1);
    });
  });

  describe("the state", () => {
    /** The state after each entry: the same for writer, live reader, later reader and history. */
    const statesOf = async (entries: readonly Entry[]) => {
      const live = await read(everything, "latest", { by: rig.peer });
      const answers: Event[] = [];
      for (const entry of entries) answers.push(await stored(entry));
      const views = [
        answers,
        await take(live, entries.length),
        await take(await read(everything, "earliest"), entries.length),
        await rig.log.history(account, EventKind.PAYMENT, "order-1", entries.length),
      ].map((events) => events.map(stateOn));
      for (const view of views) assert.deepEqual(view, views[0]);
      return views[0];
    };
    const refund = (operationId: string, amount: string) =>
      payment({ operation: "refund", operationId, amount, status: "success" });

    it("is on each event, for the whole external id as of that event", async () => {
      const paid = payment({ paymentId: "second", status: "success", amount: "10.00" });
      const states = await statesOf([
        payment({ paymentId: "first" }),
        payment({ paymentId: "first", status: "failure" }),
        payment({ paymentId: "second" }),
        paid,
        // A late failure of another attempt changes nothing.
        payment({ paymentId: "third", status: "failure" }),
        refund("r-1", "4.00"),
        refund("r-2", "6.00"),
      ]);
      const refunded = ["PARTIALLY_REFUNDED", "REFUNDED"];
      assert.deepEqual(states, ["PENDING", "FAILED", "PENDING", "PAID", "PAID", ...refunded]);
    });
  });

  it("counts back from the end of the log", async () => {
    const made: Event[] = [];
    for (let i = 0; i < 3; i++) made.push(await stored(payment({ externalId: `order-${i}` })));
    const behind = async (count: number) => rig.log.cursorBefore(account, count);
    assert.deepEqual([await behind(0), await behind(1)], [made[2]?.cursor, made[1]?.cursor]);
    const start = await behind(3);
    assert.ok(start < (made[0]?.cursor ?? ""));
    assert.equal(await behind(9), start);
  });
}

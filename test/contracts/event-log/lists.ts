import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../../src/gen/payments/v1/payment_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { Entry, EventLog, Selection } from "../../../src/ledger/log.ts";
import { payment, payout, type Told } from "../../ledger/entries.ts";
import { newCall, started } from "../../ledger/new-call.ts";
import { account, type LogRig } from "./rig.ts";

/** The lists of payments, and of operations that are to be looked up. */
export function testLists(rig: LogRig): void {
  const { stored } = rig;

  describe("lists", () => {
    const all: Selection = {
      ...{ kind: EventKind.PAYMENT, states: [], needsOperator: undefined, newestFirst: false },
    };
    const list = async (of: Partial<Selection> = {}, limit = 1_000, by = rig.log) =>
      by.list(account, { ...all, ...of }, limit);
    const names = async (of: Partial<Selection> = {}, limit?: number, by?: EventLog) =>
      (await list(of, limit, by)).map(({ externalId }) => externalId);
    const told = (externalId: string, status: string, about: Told = {}) =>
      stored(payment({ externalId, paymentId: externalId, status, ...about }));
    const begin = async (externalId: string) =>
      started(await (rig.log as Ledger).begin(account, newCall({ externalId })));

    it("has each payment where it was first heard of, in the index of its state", async () => {
      for (const name of ["c", "a", "b"]) await told(name, "pending");
      await stored(payout({ externalId: "a" }));
      await told("a", "success");
      assert.deepEqual(await names(), ["c", "a", "b"]);
      assert.deepEqual(await names({ newestFirst: true }), ["b", "a", "c"]);
      assert.deepEqual(await names({}, 2, rig.peer), ["c", "a"]);
      assert.deepEqual(await names({ states: [PaymentState.PENDING] }), ["c", "b"]);
      assert.deepEqual(await names({ states: [PaymentState.PAID, PaymentState.PAID] }), ["a"]);
      assert.deepEqual(await names({ kind: EventKind.PAYOUT }), ["a"]);
      assert.deepEqual(await rig.log.list("another", all, 9), []);
      const [first, second, third] = await list();
      assert.ok(first && second && third);
      const between = { after: first.firstSeen, before: third.firstSeen };
      assert.deepEqual(await names(between), ["a"]);
      const { firstSeen, updatedMs } = await (rig.log as Ledger).known(account, all.kind, "a");
      assert.equal(firstSeen, second.firstSeen);
      assert.ok((updatedMs ?? 0) >= Math.floor(second.firstSeen / 1_000));
    });

    it("has a payment from its first call's answer or loss on, and what became of it", async () => {
      const unknown = { states: [PaymentState.UNKNOWN] };
      const intent = await begin("order-1");
      assert.deepEqual(await names({}, 9, rig.peer), []);
      await (rig.log as Ledger).end(account, intent, { state: "unknown" });
      assert.deepEqual(await names(unknown, 9, rig.peer), ["order-1"]);
      await (rig.peer as Ledger).giveUp(account, intent);
      assert.deepEqual(await names({ ...unknown, needsOperator: true }), ["order-1"]);
      assert.deepEqual(await names({ needsOperator: false }), []);
      const [before] = await list();
      await told("order-1", "success");
      assert.deepEqual(await names({ needsOperator: true }), []);
      assert.deepEqual(await list({ states: [PaymentState.PAID] }), [before]);
    });

    it("lacks a payment of which nothing is known any more, which is new when it comes again", async () => {
      const intent = await begin("refused");
      await (rig.log as Ledger).end(account, intent, { state: "unknown" });
      await told("other", "pending");
      assert.deepEqual(await names({}, 9, rig.peer), ["refused", "other"]);
      await (rig.log as Ledger).end(account, intent, { state: "closed", key: "free" });
      assert.deepEqual(await names({}, 9, rig.peer), ["other"]);
      await told("refused", "success");
      assert.deepEqual(await names(), ["other", "refused"]);
    });

    it("pages without a gap and without a repeat while payments change and come", async () => {
      const count = 60;
      const name = (n: number) => `order-${n}`;
      for (let n = 0; n < count; n++) await told(name(n), "pending");
      const changes = (async () => {
        for (let n = 0; n < count; n++) {
          // Begin where the pages have not come yet, and where they have been.
          const of = n % 2 ? count - n : n;
          await stored(
            payment({ externalId: name(of), paymentId: name(of), status: "success" }),
            n % 3 ? rig.log : rig.peer,
          );
          await told(`new-${n}`, "pending");
        }
      })();
      const seen: string[] = [];
      for (let after = 0; ; ) {
        const page = await list({ after }, 7);
        seen.push(...page.map(({ externalId }) => externalId));
        const last = page.at(-1);
        if (!last) break;
        after = last.firstSeen;
      }
      await changes;
      const first = Array.from({ length: count }, (_, n) => name(n));
      assert.deepEqual(seen.slice(0, count), first);
      assert.deepEqual(await names(), [...first, ...first.map((_, n) => `new-${n}`)]);
      const states = [PaymentState.PAID];
      assert.deepEqual(await names({ states }), first);
    });
  });

  describe("unfinished operations", () => {
    const unfinished = async (limit = 10, by = rig.log) =>
      (await by.unfinished(account, 0, limit)).map(
        ({ externalId, subjectId, operation }) => `${externalId} ${subjectId} ${operation}`,
      );

    /** Stores an entry in its own millisecond: the order is exact only to the millisecond. */
    const storedApart = async (entry: Entry) => {
      await delay(2);
      await stored(entry);
    };

    it("are listed, the oldest first, until they are final", async () => {
      assert.deepEqual(await unfinished(), []);
      await storedApart(payment({ paymentId: "a", status: "init" }));
      await storedApart(payment({ paymentId: "b" }));
      await storedApart(payout({ status: "processing" }));
      await storedApart(payment({ paymentId: "a", operation: "confirm" }));
      await stored(payment({ paymentId: "a" }));
      assert.deepEqual(await unfinished(10, rig.peer), [
        "order-1 a payment",
        "order-1 b payment",
        "payout-1 tx-1 payout",
        "order-1 a confirm",
      ]);
      assert.deepEqual(await unfinished(2), ["order-1 a payment", "order-1 b payment"]);
      assert.deepEqual(await rig.log.unfinished("other", 0, 10), []);
      await stored(payment({ paymentId: "a", status: "success" }));
      await stored(payout({ status: "failure" }));
      assert.deepEqual(await unfinished(), ["order-1 b payment", "order-1 a confirm"]);
      // A late event does not reopen a final operation.
      await stored(payment({ paymentId: "a", statusCode: "late" }));
      assert.deepEqual(await unfinished(), ["order-1 b payment", "order-1 a confirm"]);
    });

    it("do not include refunds, cancellations and look-ups", async () => {
      for (const operation of ["refund", "cancel", "lookup"] as const) {
        await stored(payment({ operation }));
      }
      assert.deepEqual(await unfinished(), []);
    });

    it("do not include one whose external_id is too long for a request, though its event is stored", async () => {
      const externalId = "x".repeat(900_000);
      await stored(payment({ externalId }));
      assert.deepEqual(await unfinished(), []);
      const found = await rig.log.snapshot(account, EventKind.PAYMENT, externalId);
      assert.equal(found?.operations[0]?.subjectId, "pay-1");
      const longer = await rig.log.snapshot(account, EventKind.PAYMENT, `${externalId}x`);
      assert.equal(longer, undefined);
    });

    it("are listed once they are old enough", async () => {
      await stored(payment());
      assert.deepEqual(await rig.log.unfinished(account, 60_000, 10), []);
      let found = await rig.log.unfinished(account, 20, 10);
      while (found.length === 0) found = await rig.log.unfinished(account, 20, 10);
      const [one] = found;
      assert(one && one.ageMs >= 20 && one.ageMs < 60_000, `${one?.ageMs}`);
    });

    it("are not listed after dismiss until a further event arrives", async () => {
      await storedApart(payment({ paymentId: "a", status: "init" }));
      await storedApart(payment({ paymentId: "b" }));
      const [first] = await rig.log.unfinished(account, 0, 1);
      assert(first);
      await rig.peer.dismiss(account, [first]);
      await rig.peer.dismiss(account, []);
      assert.deepEqual(await unfinished(), ["order-1 b payment"]);
      await storedApart(payment({ paymentId: "a" }));
      assert.deepEqual(await unfinished(), ["order-1 b payment", "order-1 a payment"]);
    });
  });
}

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { EventKind } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../../src/gen/payments/v1/payment_pb.ts";
import type { Ledger } from "../../../src/ledger/ledger.ts";
import type { Selection } from "../../../src/ledger/log.ts";
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
    const names = async (of: Partial<Selection> = {}, limit?: number, by?: Ledger) =>
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
}

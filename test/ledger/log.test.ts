import assert from "node:assert/strict";
import { beforeEach, describe, it } from "node:test";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry, Selection, Topic } from "../../src/ledger/log.ts";
import { createMemoryReplicas } from "./create.ts";
import { cursors, payment, payout, snapshotOf, step, type Told, take } from "./entries.ts";
import { keptLettersOf, letter, lettersOf } from "./letters.ts";
import { callBegun } from "./new-call.ts";
import { hasCode } from "./refusals.ts";

const account = "shop";
const week = 7 * 86_400_000;

/**
 * What two replicas know of one log: its readers, lists and dead letters. Stores know nothing of it, so
 * memory stands for all (contracts/kernel.ts). What the ledger decides: decisions.test.ts; how stored
 * and live events follow each other: tail.test.ts; what histories of all sorts show: simulation.
 */
describe("the log of two replicas", () => {
  let ahead = 0;
  let log: Ledger;
  let peer: Ledger;
  beforeEach(() => {
    ahead = 0;
    const now = () => Date.now() + ahead;
    [log, peer] = createMemoryReplicas({ retentionMs: week, now });
  });
  const stored = async (entry: Entry, by = log) => {
    const { outcome, event } = await by.append(account, entry);
    assert.equal(outcome, "stored");
    assert(event);
    return event;
  };

  it("returns the stored event with its cursor and the time it was received", async () => {
    const entry = payment({ status: "success" });
    const event = await stored(entry);
    assert.match(event.cursor, /^[\x21-\x7e]+$/);
    assert.deepEqual([event.externalId, event.paymentId], ["order-1", "pay-1"]);
    assert.deepEqual([event.kind, event.source], [EventKind.PAYMENT, EventSource.CALLBACK]);
    assert.deepEqual([event.final, step(event)], [true, "payment:success"]);
    assert(event.receivedAt && event.receivedAt.seconds > 0n);
    assert.equal(entry.event.cursor, "", "the writer's own message stays as it is");
    assert.equal(entry.event.receivedAt, undefined);
  });

  it("counts back from its end", async () => {
    const made: string[] = [];
    for (let i = 0; i < 3; i++) made.push((await stored(payment({ externalId: `${i}` }))).cursor);
    const behind = async (count: number) => log.cursorBefore(account, count);
    assert.deepEqual([await behind(0), await behind(1)], [made[2], made[1]]);
    const start = await behind(3);
    assert.ok(start < (made[0] ?? ""));
    assert.equal(await behind(9), start);
  });

  it("is read on from a snapshot whose events have expired", async () => {
    await stored(payment({ status: "success" }));
    for (const externalId of ["a", "b"]) await stored(payment({ externalId }));
    ahead = week + 1_000;
    const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
    assert.equal(snapshot?.operations[0]?.status, "success", "the state outlives the events");
    const order: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };
    const { signal } = new AbortController();
    const events = await log.read(account, order, snapshot.cursor, { signal });
    const refund = await stored(payment({ operation: "refund" }));
    assert.deepEqual(cursors(await take(events, 1)), [refund.cursor]);
  });

  describe("as a list", () => {
    const all: Selection = {
      ...{ kind: EventKind.PAYMENT, states: [], needsOperator: undefined, newestFirst: false },
    };
    const list = (of: Partial<Selection> = {}, limit = 1_000, by = log) =>
      by.list(account, { ...all, ...of }, limit);
    const names = async (of: Partial<Selection> = {}, limit?: number, by?: Ledger) =>
      (await list(of, limit, by)).map(({ externalId }) => externalId);
    const told = (externalId: string, status: string, about: Told = {}) =>
      stored(payment({ externalId, paymentId: externalId, status, ...about }));
    const begin = async (externalId: string) => await callBegun(log, account, { externalId });

    it("has each payment where it was first heard of, in the index of its state", async () => {
      for (const name of ["c", "a", "b"]) await told(name, "pending");
      await stored(payout({ externalId: "a" }));
      await told("a", "success");
      assert.deepEqual(await names(), ["c", "a", "b"]);
      assert.deepEqual(await names({ newestFirst: true }), ["b", "a", "c"]);
      assert.deepEqual(await names({}, 2, peer), ["c", "a"]);
      assert.deepEqual(await names({ states: [PaymentState.PENDING] }), ["c", "b"]);
      assert.deepEqual(await names({ states: [PaymentState.PAID, PaymentState.PAID] }), ["a"]);
      assert.deepEqual(await names({ kind: EventKind.PAYOUT }), ["a"]);
      assert.deepEqual(await log.list("another", all, 9), []);
      const [first, second, third] = await list();
      assert.ok(first && second && third);
      const between = { after: first.firstSeen, before: third.firstSeen };
      assert.deepEqual(await names(between), ["a"]);
      const { firstSeen, updatedMs } = await log.known(account, all.kind, "a");
      assert.equal(firstSeen, second.firstSeen);
      assert.ok((updatedMs ?? 0) >= Math.floor(second.firstSeen / 1_000));
    });

    it("has a payment from its first call's answer or loss on, and what became of it", async () => {
      const unknown = { states: [PaymentState.UNKNOWN] };
      const intent = await begin("order-1");
      assert.deepEqual(await names({}, 9, peer), []);
      await log.end(account, intent, { state: "unknown" });
      assert.deepEqual(await names(unknown, 9, peer), ["order-1"]);
      await peer.giveUp(account, intent);
      assert.deepEqual(await names({ ...unknown, needsOperator: true }), ["order-1"]);
      assert.deepEqual(await names({ needsOperator: false }), []);
      const [before] = await list();
      await told("order-1", "success");
      assert.deepEqual(await names({ needsOperator: true }), []);
      assert.deepEqual(await list({ states: [PaymentState.PAID] }), [before]);
    });

    it("has no payment of which nothing is known any more, which is new when it comes again", async () => {
      const intent = await begin("refused");
      await log.end(account, intent, { state: "unknown" });
      await told("other", "pending");
      assert.deepEqual(await names({}, 9, peer), ["refused", "other"]);
      await log.end(account, intent, { state: "closed", key: "free" });
      assert.deepEqual(await names({}, 9, peer), ["other"]);
      await told("refused", "success");
      assert.deepEqual(await names(), ["other", "refused"]);
    });
  });

  describe("keeps dead letters", () => {
    const remove = (id: string) => log.letters.removeDeadLetter(account, id);

    it("once per id, in order, until they are removed", async () => {
      assert.deepEqual(await lettersOf(log, account), []);
      for (const id of ["l-1", "l-2", "l-1"]) {
        await log.letters.addDeadLetter(account, letter(id));
      }
      assert.deepEqual(await lettersOf(peer, account), [letter("l-1"), letter("l-2")]);
      assert.equal(await peer.letters.countDeadLetters(account), 2);
      assert.equal(await peer.letters.countDeadLetters("other account"), 0);
      assert.deepEqual([await remove("l-1"), await remove("l-1")], [true, false]);
      assert.deepEqual(await lettersOf(log, account), [letter("l-2")]);
    });

    it("to be found by their ids", async () => {
      await log.letters.addDeadLetter(account, letter("l-1"));
      const found = await peer.letters.deadLetter(account, "l-1");
      assert.deepEqual(await keptLettersOf(log, account), [found]);
      assert.equal(await log.letters.deadLetter(account, "l-2"), undefined);
      assert.equal(await log.letters.deadLetter("other", "l-1"), undefined);
    });

    it("to be listed from either end, and after a place, also that of a removed letter", async () => {
      // More than the log reads at a time.
      const all = Array.from({ length: 45 }, (_, i) => letter(`l-${i}`));
      for (const one of all) await log.letters.addDeadLetter(account, one);
      assert.deepEqual(await lettersOf(peer, account), all);
      const newestFirst = true;
      assert.deepEqual(await lettersOf(log, account, { newestFirst }), all.toReversed());

      const kept = await keptLettersOf(log, account);
      const behind = kept[20]?.place;
      await remove("l-20");
      await remove("l-22");
      const gone = [all[21], ...all.slice(23)];
      assert.deepEqual(await lettersOf(peer, account, { behind }), gone);
      const before = all.slice(0, 20).reverse();
      assert.deepEqual(await lettersOf(log, account, { behind, newestFirst }), before);
      const last = kept[44]?.place;
      await remove("l-44");
      await log.letters.addDeadLetter(account, letter("later"));
      assert.deepEqual(await lettersOf(log, account, { behind: last }), [letter("later")]);
      for (const behind of ["", "x", "-1", "1e3", "+inf"]) {
        await assert.rejects(lettersOf(log, account, { behind }), hasCode("INVALID_ARGUMENT"));
      }
    });
  });
});

import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { type Event, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Appended, Entry, Selection, Topic } from "../../src/ledger/log.ts";
import {
  currentStep,
  cursors,
  payment,
  payout,
  snapshotOf,
  stateOn,
  step,
  type Told,
  take,
  takeUntil,
} from "../ledger/entries.ts";
import { keptLettersOf, letter, lettersOf } from "../ledger/letters.ts";
import { newCall, started } from "../ledger/new-call.ts";
import { hasCode, isFull } from "../ledger/refusals.ts";

/** A new, empty log, and what the suite does to it from outside. */
export interface EventLogHarness {
  readonly log: Ledger;
  /** The same store as another process opens it; the log itself if only one process can. */
  readonly peer: Ledger;
  /** Makes all events stored so far older than the retention. */
  expire(account: string): Promise<void>;
  /** Frees what the logs use, after they were closed. */
  stop(): Promise<void>;
}

/** How many dead letters, and how much of them, the harness's logs have room for. */
export const lettersBound = { letters: 50, bytes: 40_000 };

const account = "shop";
const everything: Topic = { kinds: [] };
const order1: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };

/**
 * Tests what every store owes the ledger: records, readers, lists, dead letters. What the ledger
 * decides is the same on all of them, and tested once: test/ledger/decisions.test.ts. So is how stored
 * and live events follow each other: test/ledger/tail.test.ts.
 */
export function eventLogContract(name: string, create: () => Promise<EventLogHarness>): void {
  let harness: EventLogHarness;
  let log: Ledger;
  let peer: Ledger;
  let ends: AbortController;
  const read = (topic: Topic, after: string, { by = log } = {}) =>
    by.read(account, topic, after, { signal: ends.signal });
  const append = (entry: Entry, by = log): Promise<Appended> => by.append(account, entry);
  const stored = async (entry: Entry, by = log): Promise<Event> => {
    const { outcome, event } = await append(entry, by);
    assert.equal(outcome, "stored");
    assert(event);
    return event;
  };
  /** Stores many payments, twenty at a time, and returns their events in order. */
  const storeMany = async (
    count: number,
    toldOf: (name: string) => Told = (name) => ({ externalId: name, paymentId: name }),
  ): Promise<Event[]> => {
    const entries = Array.from({ length: count }, (_, i) => payment(toldOf(`many-${i}`)));
    const events: Event[] = [];
    while (entries.length > 0) {
      events.push(...(await Promise.all(entries.splice(0, 20).map((entry) => stored(entry)))));
    }
    return events.sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
  };

  describe(`event log contract: ${name}`, () => {
    beforeEach(async () => {
      harness = await create();
      ({ log, peer } = harness);
      ends = new AbortController();
    });
    afterEach(async () => {
      ends.abort();
      await log.close();
      await peer.close();
      await harness.stop();
    });

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
        Array.from({ length: 100 }, (_, i) => append(payment(), i % 2 ? peer : log)),
      );
      assert.equal(answers.filter(({ outcome }) => outcome === "stored").length, 1);
      const history = await log.history(account, EventKind.PAYMENT, "order-1", 10);
      assert.equal(history.length, 1);
    });

    /** The state after each entry: the same for writer, live reader, later reader and history. */
    const statesOf = async (entries: readonly Entry[]) => {
      const live = await read(everything, "latest", { by: peer });
      const answers: Event[] = [];
      for (const entry of entries) answers.push(await stored(entry));
      const views = [
        answers,
        await take(live, entries.length),
        await take(await read(everything, "earliest"), entries.length),
        await log.history(account, EventKind.PAYMENT, "order-1", entries.length),
      ].map((events) => events.map(stateOn));
      for (const view of views) assert.deepEqual(view, views[0]);
      return views[0];
    };
    const refund = (operationId: string, amount: string) =>
      payment({ operation: "refund", operationId, amount, status: "success" });

    it("has the state on each event, for the whole external id as of that event", async () => {
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

    it("counts back from the end of the log", async () => {
      const made: Event[] = [];
      for (let i = 0; i < 3; i++) made.push(await stored(payment({ externalId: `order-${i}` })));
      const behind = async (count: number) => log.cursorBefore(account, count);
      assert.deepEqual([await behind(0), await behind(1)], [made[2]?.cursor, made[1]?.cursor]);
      const start = await behind(3);
      assert.ok(start < (made[0]?.cursor ?? ""));
      assert.equal(await behind(9), start);
    });

    it("is read without a gap and a repeat wherever a concurrent writer appends", async () => {
      for (let round = 0; round < 21; round++) {
        const externalId = `race-${round}`;
        const topic: Topic = { kind: EventKind.PAYMENT, externalId };
        const made: Event[] = [];
        const write = async (i: number) => {
          made.push(await stored(payment({ externalId, paymentId: `${externalId}-${i}` }), peer));
        };
        await write(0);
        const writer = (async () => {
          for (let i = 1; i <= 20; i++) {
            await write(i);
            for (let turn = 0; turn < round % 7; turn++) await Promise.resolve();
          }
        })();
        for (let turn = 0; turn < round; turn++) await Promise.resolve();
        const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, externalId);
        assert(snapshot);
        const known = snapshot.operations.map(({ event }) => event);
        const rest = await take(await read(topic, snapshot.cursor), 21 - known.length);
        await writer;
        assert.deepEqual(cursors([...known, ...rest]), cursors(made));
      }
    });

    it("is read on from a snapshot whose events have expired", async () => {
      await stored(payment({ status: "success" }));
      await storeMany(2);
      await harness.expire(account);
      const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
      assert(snapshot, "the state outlives the events");
      assert.equal(await currentStep(log), "payment:success");
      const events = await read(order1, snapshot.cursor);
      const refund = await stored(payment({ operation: "refund" }));
      assert.deepEqual(cursors(await take(events, 1)), [refund.cursor]);
    });

    it("yields all events of a payment that has more than a page of them", async () => {
      const made = cursors(await storeMany(600, (name) => ({ statusCode: name })));
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

    it("ends its readers when it is closed", async () => {
      const next = (await read(order1, "latest"))[Symbol.asyncIterator]().next();
      await log.close();
      await assert.rejects(next, hasCode("UNAVAILABLE"));
      await assert.rejects(append(payment()), hasCode("UNAVAILABLE"));
      await assert.rejects(read(order1, "latest"), hasCode("UNAVAILABLE"));
    });

    const all: Selection = {
      ...{ kind: EventKind.PAYMENT, states: [], needsOperator: undefined, newestFirst: false },
    };
    const list = async (of: Partial<Selection> = {}, limit = 1_000, by = log) =>
      by.list(account, { ...all, ...of }, limit);
    const names = async (of: Partial<Selection> = {}, limit?: number, by?: Ledger) =>
      (await list(of, limit, by)).map(({ externalId }) => externalId);
    const told = (externalId: string, status: string, about: Told = {}) =>
      stored(payment({ externalId, paymentId: externalId, status, ...about }));
    const begin = async (externalId: string) =>
      started(await log.begin(account, newCall({ externalId })));

    it("lists each payment where it was first heard of, in the index of its state", async () => {
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

    it("lists a payment from its first call's answer or loss on, and what became of it", async () => {
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

    it("lists no payment of which nothing is known any more, which is new when it comes again", async () => {
      const intent = await begin("refused");
      await log.end(account, intent, { state: "unknown" });
      await told("other", "pending");
      assert.deepEqual(await names({}, 9, peer), ["refused", "other"]);
      await log.end(account, intent, { state: "closed", key: "free" });
      assert.deepEqual(await names({}, 9, peer), ["other"]);
      await told("refused", "success");
      assert.deepEqual(await names(), ["other", "refused"]);
    });

    it("lists pages without a gap and without a repeat while payments change and come", async () => {
      const count = 60;
      const name = (n: number) => `order-${n}`;
      for (let n = 0; n < count; n++) await told(name(n), "pending");
      const changes = (async () => {
        for (let n = 0; n < count; n++) {
          // Begin where the pages have not come yet, and where they have been.
          const of = n % 2 ? count - n : n;
          await stored(
            payment({ externalId: name(of), paymentId: name(of), status: "success" }),
            n % 3 ? log : peer,
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

    it("keeps dead letters once per id, in order, until they are removed", async () => {
      assert.deepEqual(await lettersOf(log, account), []);
      await log.letters.addDeadLetter(account, letter("l-1"));
      await log.letters.addDeadLetter(account, letter("l-2"));
      await log.letters.addDeadLetter(account, letter("l-1"));
      assert.deepEqual(await lettersOf(peer, account), [letter("l-1"), letter("l-2")]);
      assert.equal(await peer.letters.countDeadLetters(account), 2);
      assert.equal(await peer.letters.countDeadLetters("other account"), 0);
      assert.equal(await log.letters.removeDeadLetter(account, "l-1"), true);
      assert.equal(await log.letters.removeDeadLetter(account, "l-1"), false);
      assert.deepEqual(await lettersOf(log, account), [letter("l-2")]);
    });

    it("finds dead letters by their ids", async () => {
      await log.letters.addDeadLetter(account, letter("l-1"));
      const { place, ...found } = (await peer.letters.deadLetter(account, "l-1")) ?? {
        place: "",
      };
      assert.deepEqual(found, letter("l-1"));
      assert.deepEqual(
        (await keptLettersOf(log, account)).map((listed) => listed.place),
        [place],
      );
      assert.equal(await log.letters.deadLetter(account, "l-2"), undefined);
      assert.equal(await log.letters.deadLetter("other", "l-1"), undefined);
    });

    it("lists dead letters from either end, and after a place, also that of a removed letter", async () => {
      // More than the log reads at a time.
      const all = Array.from({ length: 45 }, (_, i) => letter(`l-${i}`));
      for (const one of all) await log.letters.addDeadLetter(account, one);
      assert.deepEqual(await lettersOf(peer, account), all);
      const newestFirst = true;
      assert.deepEqual(await lettersOf(log, account, { newestFirst }), all.toReversed());

      const kept = await keptLettersOf(log, account);
      const behind = kept[20]?.place;
      await log.letters.removeDeadLetter(account, "l-20");
      await log.letters.removeDeadLetter(account, "l-22");
      const gone = [all[21], ...all.slice(23)];
      assert.deepEqual(await lettersOf(peer, account, { behind }), gone);
      const before = all.slice(0, 20).reverse();
      assert.deepEqual(await lettersOf(log, account, { behind, newestFirst }), before);
      const last = kept[44]?.place;
      await log.letters.removeDeadLetter(account, "l-44");
      await log.letters.addDeadLetter(account, letter("later"));
      assert.deepEqual(await lettersOf(log, account, { behind: last }), [letter("later")]);
    });

    const add = (id: string, { bytes = 9, by = log } = {}) =>
      by.letters.addDeadLetter(account, letter(id, Buffer.alloc(bytes, id).toString("base64")));

    it("refuses dead letters where they do not fit, by all processes together, rather than dropped", async () => {
      const { letters: max } = lettersBound;
      const added = await Promise.allSettled(
        Array.from({ length: max + 15 }, (_, n) => add(`l-${n}`, { by: n % 2 ? log : peer })),
      );
      const refused = added.filter((one) => one.status === "rejected");
      assert.deepEqual(
        refused.map(({ reason }) => isFull(reason)),
        Array.from({ length: 15 }, () => true),
      );
      const [first = letter(""), ...rest] = await lettersOf(peer, account);
      assert.equal(rest.length, max - 1);
      await add(first.id);
      for (const is of [true, false]) {
        assert.equal(await log.letters.removeDeadLetter(account, first.id), is);
      }
      await add("for the one that was removed");
      await assert.rejects(add("one more", { by: peer }), isFull);
      assert.equal(await peer.letters.countDeadLetters(account), max);
    });

    it("has room for dead letters up to a number of bytes together", async () => {
      const bytes = 0.7 * lettersBound.bytes;
      await add("large", { bytes });
      await assert.rejects(add("too much", { bytes }), isFull);
      await add("small");
      await log.letters.removeDeadLetter(account, "large");
      await add("fits now", { bytes });
    });

    it("lists no dead letters after text that is not a place", async () => {
      for (const behind of ["", "x", "-1", "1e3", "+inf"]) {
        await assert.rejects(lettersOf(log, account, { behind }), hasCode("INVALID_ARGUMENT"));
      }
    });
  });
}

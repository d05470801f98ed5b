import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { toBinary } from "@bufbuild/protobuf";
import { GatewayError } from "../../src/errors.ts";
import {
  type Event,
  EventKind,
  EventSchema,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { currentEvent } from "../../src/ledger/current.ts";
import type { Intent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Appended, Entry, EventLog, Selection, Topic } from "../../src/ledger/log.ts";
import { traceOf } from "../../src/ledger/stored-event.ts";
import type { Kind } from "../../src/model/kinds.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { newEpoch } from "../../src/stores/cursor.ts";
import {
  cursors,
  payment,
  payout,
  stateOn,
  step,
  type Told,
  take,
  takeUntil,
} from "../ledger/entries.ts";
import { keptLettersOf, lettersOf } from "../ledger/letters.ts";

/** A new, empty log, and what the suite does to it from outside. */
export interface EventLogHarness {
  readonly log: EventLog;
  /** The same store as another process opens it; the log itself if only one process can. */
  readonly peer: EventLog;
  /** Makes all events stored so far older than the retention. */
  expire(account: string): Promise<void>;
  /** Frees what the logs use, after they were closed. */
  stop(): Promise<void>;
}

const timeout = 120_000;
const account = "shop";
const everything: Topic = { kinds: [] };
const order1: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };

/** Begins a call with `confirm: false`. */
async function holdBy(
  log: EventLog,
  externalId: string,
  id: string,
  method: MoneyMethod = "CreatePayment",
): Promise<Intent> {
  const about = { kind: EventKind.PAYMENT, externalId, leaseMs: 60_000, hold: true };
  const begun = await (log as Ledger).begin(account, { id, method, ...about });
  assert.ok(begun.kind === "started");
  return begun.intent;
}

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
  describe(`event log contract: ${name}`, { timeout }, () => {
    let harness: EventLogHarness;
    let log: EventLog;
    let peer: EventLog;
    let ends: AbortController;

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

    const read = (
      topic: Topic,
      after: string,
      { by = log, of = account, signal = ends.signal } = {},
    ) => by.read(of, topic, after, { signal });
    const append = async (entry: Entry, by = log): Promise<Appended> => by.append(account, entry);
    const stored = async (entry: Entry, by = log): Promise<Event> => {
      const { outcome, event } = await append(entry, by);
      assert.equal(outcome, "stored");
      assert(event);
      return event;
    };
    /** Stores many payments, twenty at a time, and returns their events in order. */
    const storeMany = async (
      count: number,
      from = 0,
      toldOf: (name: string) => Told = (name) => ({ externalId: name, paymentId: name }),
    ): Promise<Event[]> => {
      const entries = Array.from({ length: count }, (_, i) => payment(toldOf(`many-${from + i}`)));
      const events: Event[] = [];
      while (entries.length > 0) {
        events.push(...(await Promise.all(entries.splice(0, 20).map((entry) => stored(entry)))));
      }
      return events.sort((a, b) => (a.cursor < b.cursor ? -1 : 1));
    };
    const snapshotOf = (externalId = "order-1", kind: Kind = EventKind.PAYMENT) =>
      log.snapshot(account, kind, externalId);
    const currentStep = async (externalId = "order-1"): Promise<string | undefined> => {
      const snapshot = await snapshotOf(externalId);
      const event = snapshot && currentEvent(snapshot);
      return event && step(event);
    };

    describe("append", () => {
      it("returns the stored event with its cursor and the time it was received", async () => {
        const event = await stored(payment({ status: "success" }));
        assert.match(event.cursor, /^[\x21-\x7e]+$/);
        assert.equal(event.kind, EventKind.PAYMENT);
        assert.equal(event.externalId, "order-1");
        assert.equal(event.paymentId, "pay-1");
        assert.equal(event.source, EventSource.CALLBACK);
        assert.equal(event.final, true);
        assert.equal(step(event), "payment:success");
        assert(event.receivedAt && event.receivedAt.seconds > 0n);
      });

      it("does not change the writer's own message", async () => {
        const entry = payment();
        await stored(entry);
        assert.equal(entry.event.cursor, "");
        assert.equal(entry.event.receivedAt, undefined);
      });

      it("gives cursors that are unique and whose text order is the order of the log", async () => {
        const given: string[] = [];
        for (let i = 0; i < 200; i++)
          given.push((await stored(payment({ paymentId: `p-${i}` }))).cursor);
        assert.deepEqual([...given].sort(), given);
        assert.equal(new Set(given).size, given.length);
        assert.equal(new Set(given.map(({ length }) => length)).size, 1);
        const kept = await take(await read(everything, "earliest"), 200);
        assert.deepEqual(cursors(kept), given);
      });

      it("keeps one order for concurrent writers in all processes", async () => {
        const writers = Array.from({ length: 200 }, (_, i) =>
          stored(payment({ paymentId: `p-${i}` }), i % 2 ? peer : log),
        );
        const given = cursors(await Promise.all(writers)).sort();
        assert.equal(new Set(given).size, 200);
        for (const by of [log, peer]) {
          const kept = await take(await read(everything, "earliest", { by }), 200);
          assert.deepEqual(cursors(kept), given);
        }
      });
    });

    describe("what is decided about a record", () => {
      it("stores one of a hundred identical concurrent callbacks", async () => {
        const answers = await Promise.all(
          Array.from({ length: 100 }, (_, i) => append(payment(), i % 2 ? peer : log)),
        );
        assert.equal(answers.filter(({ outcome }) => outcome === "stored").length, 1);
        const history = await log.history(account, EventKind.PAYMENT, "order-1", 10);
        assert.equal(history.length, 1);
      });

      it("has no state before the first event, nor for another payment or kind", async () => {
        assert.equal(await snapshotOf(), undefined);
        await stored(payment());
        assert.equal(await snapshotOf("order-2"), undefined);
        assert.equal(await snapshotOf("order-1", EventKind.PAYOUT), undefined);
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

      it("is AUTHORIZED from the first callback on when a hold was noted before", async () => {
        await holdBy(peer, "order-1", "call-1");
        assert.equal(await snapshotOf(), undefined, "a note is no event");
        const states = await statesOf([
          payment({ status: "success" }),
          payment({ operation: "confirm", status: "failure", source: "response" }),
          payment({ operation: "confirm", operationId: "c-2", status: "success" }),
        ]);
        assert.deepEqual(states, ["AUTHORIZED", "AUTHORIZED", "PAID"]);
      });

      it("keeps the words of an event whole", async () => {
        const { cursor } = await stored(payment({ operation: "chargeback", status: "expired" }));
        const [event] = await peer.history(account, EventKind.PAYMENT, "order-1", 1);
        assert.equal(event?.cursor, cursor);
        const { value } = event.resource;
        assert.deepEqual(
          value?.unrecognized.map(({ field, value }) => [field, value]),
          [
            ["operation", "chargeback"],
            ["details.status", "expired"],
          ],
        );
      });
    });

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
        await harness.expire(account);
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
        assert.deepEqual(
          cursors(await take(events, 320)),
          cursors([...before.slice(300), ...after]),
        );
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
        const resumed = await read(everything, events[4]?.cursor ?? "", { by: peer });
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
        const readers = [log, peer].map(async (by) =>
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
        const empty = await log.cursorBefore(account, 3);
        const events = cursors(await storeMany(5));
        const behind = async (after: string, count: number) =>
          cursors(await take(await read(everything, after), count));
        assert.deepEqual(await behind(empty, 5), events);
        assert.deepEqual(await behind(await peer.cursorBefore(account, 2), 2), events.slice(3));
        for (const count of [5, 9]) {
          assert.deepEqual(await behind(await log.cursorBefore(account, count), 5), events);
        }
        const end = await peer.cursorBefore(account, 0);
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
        // More than a log scans for one page.
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
        await log.close();
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

      for (const text of [
        "",
        "0",
        "now",
        "not-a-cursor",
        "1732147200000-0",
        "9".repeat(500),
        "ä",
      ]) {
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
        const { event } = await log.append("other", payment());
        await assert.rejects(read(everything, cursor, { of: "other" }), isExpired);
        await assert.rejects(read(everything, event?.cursor ?? ""), isExpired);
      });

      it("refuses one that is older than what is kept", async () => {
        const [first] = await storeMany(3);
        await harness.expire(account);
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
        await harness.expire(account);
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

    if (ofReaders) {
      describe("slow readers, and many", () => {
        it("are cut off at 1,000 unread events and lose nothing when they resume", async () => {
          const slow = (await read(everything, "latest"))[Symbol.asyncIterator]();
          const fast = await read(everything, "latest");
          const [first] = await storeMany(1);
          assert.equal((await slow.next()).value?.cursor, first?.cursor);
          const rest = take(fast, 1_201);
          const made = [first, ...(await storeMany(1_200, 1))].filter(
            (event) => event !== undefined,
          );
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

    describe("accounts", () => {
      it("see nothing of each other", async () => {
        const mine = await read(everything, "latest");
        const entry = payment({ status: "success" });
        assert.equal((await log.append("other", entry)).outcome, "stored");
        assert.equal(await snapshotOf(), undefined);
        assert.deepEqual(await log.history(account, EventKind.PAYMENT, "order-1", 10), []);
        const same = await stored(entry);
        assert.deepEqual(cursors(await take(mine, 1)), [same.cursor]);
        await log.letters.addDeadLetter("other", letter("l-1"));
        assert.deepEqual(await lettersOf(log, account), []);
        await log.letters.removeDeadLetter(account, "l-1");
        assert.equal((await lettersOf(log, "other")).length, 1);
      });
    });

    describe("lists", () => {
      const all: Selection = {
        ...{ kind: EventKind.PAYMENT, states: [], needsOperator: undefined, newestFirst: false },
      };
      const list = async (of: Partial<Selection> = {}, limit = 1_000, by = log) =>
        by.list(account, { ...all, ...of }, limit);
      const names = async (of: Partial<Selection> = {}, limit?: number, by?: EventLog) =>
        (await list(of, limit, by)).map(({ externalId }) => externalId);
      const told = (externalId: string, status: string, about: Told = {}) =>
        stored(payment({ externalId, paymentId: externalId, status, ...about }));
      const begin = async (externalId: string, method: MoneyMethod = "CreatePayment") => {
        const about = { id: `call ${externalId}`, kind: EventKind.PAYMENT, leaseMs: 60_000 };
        const begun = await (log as Ledger).begin(account, { ...about, method, externalId });
        assert.ok(begun.kind === "started");
        return begun.intent;
      };

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
        const { firstSeen, updatedMs } = await (log as Ledger).known(account, all.kind, "a");
        assert.equal(firstSeen, second.firstSeen);
        assert.ok((updatedMs ?? 0) >= Math.floor(second.firstSeen / 1_000));
      });

      it("has a payment from its first call's answer or loss on, and what became of it", async () => {
        const unknown = { states: [PaymentState.UNKNOWN] };
        const intent = await begin("order-1");
        assert.deepEqual(await names({}, 9, peer), []);
        await (log as Ledger).end(account, intent, { state: "unknown" });
        assert.deepEqual(await names(unknown, 9, peer), ["order-1"]);
        await (peer as Ledger).giveUp(account, intent);
        assert.deepEqual(await names({ ...unknown, needsOperator: true }), ["order-1"]);
        assert.deepEqual(await names({ needsOperator: false }), []);
        const [before] = await list();
        await told("order-1", "success");
        assert.deepEqual(await names({ needsOperator: true }), []);
        assert.deepEqual(await list({ states: [PaymentState.PAID] }), [before]);
      });

      it("lacks a payment of which nothing is known any more, which is new when it comes again", async () => {
        const intent = await begin("refused");
        await (log as Ledger).end(account, intent, { state: "unknown" });
        await told("other", "pending");
        assert.deepEqual(await names({}, 9, peer), ["refused", "other"]);
        await (log as Ledger).end(account, intent, { state: "closed", key: "free" });
        assert.deepEqual(await names({}, 9, peer), ["other"]);
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
    });

    describe("history", () => {
      it("gives the newest events of one payment, oldest first", async () => {
        const made: Event[] = [];
        for (let i = 0; i < 10; i++) {
          made.push(await stored(payment({ paymentId: `p-${i}` })));
          await stored(payment({ externalId: "order-2", paymentId: `q-${i}` }));
        }
        const history = (limit: number) =>
          log.history(account, EventKind.PAYMENT, "order-1", limit);
        assert.deepEqual(cursors(await history(3)), cursors(made.slice(-3)));
        assert.deepEqual(cursors(await history(100)), cursors(made));
        assert.deepEqual(await history(0), []);
        assert.deepEqual(await log.history(account, EventKind.PAYOUT, "order-1", 5), []);
      });

      it("gives those before a cursor, unaffected by later events", async () => {
        const made: Event[] = [];
        for (let i = 0; i < 6; i++) made.push(await stored(payment({ paymentId: `p-${i}` })));
        const before = (limit: number, cursor: string) =>
          log.history(account, EventKind.PAYMENT, "order-1", limit, cursor);
        const at = (index: number) => made[index]?.cursor ?? "";
        assert.deepEqual(cursors(await before(2, at(4))), cursors(made.slice(2, 4)));
        await stored(payment({ paymentId: "later" }));
        assert.deepEqual(cursors(await before(9, at(2))), cursors(made.slice(0, 2)));
        assert.deepEqual(await before(9, at(0)), []);
        const foreign = `${at(3).slice(0, -8)}00000000`;
        await assert.rejects(before(9, foreign), { code: "OUT_OF_RANGE" });
        await assert.rejects(before(9, "nonsense"), { code: "INVALID_ARGUMENT" });
      });
    });

    describe("unfinished operations", () => {
      const unfinished = async (limit = 10, by = log) =>
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
        assert.deepEqual(await unfinished(10, peer), [
          "order-1 a payment",
          "order-1 b payment",
          "payout-1 tx-1 payout",
          "order-1 a confirm",
        ]);
        assert.deepEqual(await unfinished(2), ["order-1 a payment", "order-1 b payment"]);
        assert.deepEqual(await log.unfinished("other", 0, 10), []);
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
        const found = await log.snapshot(account, EventKind.PAYMENT, externalId);
        assert.equal(found?.states[0]?.subjectId, "pay-1");
        const longer = await log.snapshot(account, EventKind.PAYMENT, `${externalId}x`);
        assert.equal(longer, undefined);
      });

      it("are listed once they are old enough", async () => {
        await stored(payment());
        assert.deepEqual(await log.unfinished(account, 60_000, 10), []);
        let found = await log.unfinished(account, 20, 10);
        while (found.length === 0) found = await log.unfinished(account, 20, 10);
        const [one] = found;
        assert(one && one.ageMs >= 20 && one.ageMs < 60_000, `${one?.ageMs}`);
      });

      it("are not listed after dismiss until a further event arrives", async () => {
        await storedApart(payment({ paymentId: "a", status: "init" }));
        await storedApart(payment({ paymentId: "b" }));
        const [first] = await log.unfinished(account, 0, 1);
        assert(first);
        await peer.dismiss(account, [first]);
        await peer.dismiss(account, []);
        assert.deepEqual(await unfinished(), ["order-1 b payment"]);
        await storedApart(payment({ paymentId: "a" }));
        assert.deepEqual(await unfinished(), ["order-1 b payment", "order-1 a payment"]);
      });
    });

    describe("the trace of an entry", () => {
      it("is available to all readers of its event, but is not part of the message", async () => {
        const trace = `00-${"a".repeat(32)}-${"b".repeat(16)}-01`;
        const live = await read(everything, "latest", { by: peer });
        await log.append(account, { ...payment(), trace });
        await log.append(account, payment({ status: "success" }));
        const [first, second] = await take(live, 2);
        const history = await peer.history(account, EventKind.PAYMENT, "order-1", 10);
        for (const events of [[first, second], history]) {
          assert.deepEqual(
            events.map((event) => event && traceOf(event)),
            [trace, undefined],
          );
        }
        for (const event of history) {
          assert.equal(event.$unknown, undefined);
          const written = Buffer.from(toBinary(EventSchema, event)).toString("latin1");
          assert(!written.includes("a".repeat(32)));
        }
      });
    });

    describe("dead letters", () => {
      it("are kept once per id, in order, until they are removed", async () => {
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

      it("are found by their ids", async () => {
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

      it("are listed from either end, and after a place, also that of a removed letter", async () => {
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
      });

      it("are not missed by a list that continues from the newest letter after its removal", async () => {
        await log.letters.addDeadLetter(account, letter("l-1"));
        const [last] = await keptLettersOf(log, account);
        await log.letters.removeDeadLetter(account, "l-1");
        await log.letters.addDeadLetter(account, letter("l-2"));
        const behind = last?.place;
        assert.deepEqual(await lettersOf(log, account, { behind }), [letter("l-2")]);
      });

      it("are not listed after text that is not a place", async () => {
        for (const behind of ["", "x", "-1", "1e3", "+inf"]) {
          await assert.rejects(lettersOf(log, account, { behind }), hasCode("INVALID_ARGUMENT"));
        }
      });
    });
  });
}

function letter(id: string) {
  const body = Buffer.from("<html>").toString("base64");
  return { id, kind: EventKind.PAYMENT, body, reason: "the body is not JSON", receivedAtMs: 1 };
}

function hasCode(code: string) {
  return (error: unknown) => error instanceof GatewayError && error.code === code;
}

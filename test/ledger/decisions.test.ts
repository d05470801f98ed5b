import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { CallOutcome, type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStateSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { callOutcomeEntry } from "../../src/ledger/call-outcome.ts";
import { currentEvent } from "../../src/ledger/current.ts";
import { maxFailures } from "../../src/ledger/facts.ts";
import type { Intent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Appended, Entry, Topic } from "../../src/ledger/log.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { paymentState } from "../../src/ledger/payment-state.ts";
import type { Kind } from "../../src/model/kinds.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { cursors, payment, payout, stateOn, step, steps, take, takeUntil } from "./entries.ts";

const account = "shop";
const everything: Topic = { kinds: [] };
const order1: Topic = { kind: EventKind.PAYMENT, externalId: "order-1" };

/** What the ledger decides about each step. Stores know nothing of it, so memory stands for all. */
describe("decisions of the ledger", () => {
  let log: Ledger;
  let ends: AbortController;

  beforeEach(() => {
    log = createMemoryLedger({ retentionMs: 7 * 86_400_000 });
    ends = new AbortController();
  });
  afterEach(async () => {
    ends.abort();
    await log.close();
  });

  const read = (topic: Topic, after: string) =>
    log.read(account, topic, after, { signal: ends.signal });
  const append = (entry: Entry): Promise<Appended> => log.append(account, entry);
  const stored = async (entry: Entry): Promise<Event> => {
    const { outcome, event } = await append(entry);
    assert.equal(outcome, "stored");
    assert(event);
    return event;
  };
  const snapshotOf = (externalId = "order-1", kind: Kind = EventKind.PAYMENT) =>
    log.snapshot(account, kind, externalId);
  const currentStep = async (externalId = "order-1"): Promise<string | undefined> => {
    const snapshot = await snapshotOf(externalId);
    const event = snapshot && currentEvent(snapshot);
    return event && step(event);
  };
  /** Begins a call with `confirm: false`. */
  const holdBy = async (
    externalId: string,
    id: string,
    method: MoneyMethod = "CreatePayment",
  ): Promise<Intent> => {
    const about = { kind: EventKind.PAYMENT, externalId, leaseMs: 60_000, hold: true };
    const begun = await log.begin(account, { id, method, ...about });
    assert.ok(begun.kind === "started");
    return begun.intent;
  };

  describe("deduplication", () => {
    const published = async () => {
      const last = await stored(payment({ externalId: "last", paymentId: "last" }));
      const all = await takeUntil(
        await read(everything, "earliest"),
        ({ cursor }) => cursor === last.cursor,
      );
      return steps(all.slice(0, -1));
    };

    it("stores a callback with the same bytes once", async () => {
      await stored(payment({ bytes: "the same" }));
      const again = { ...payment({ bytes: "the same" }), identity: "read differently" };
      assert.deepEqual(await append(again), { outcome: "duplicate", conflict: false });
      assert.deepEqual(await published(), ["payment:pending"]);
    });

    it("stores a callback with the same identity and other bytes once", async () => {
      await stored(payment({ bytes: "{}" }));
      assert.equal((await append(payment({ bytes: "{ }" }))).outcome, "duplicate");
      assert.deepEqual(await published(), ["payment:pending"]);
    });

    it("stores entries that differ in payment_id, operation, operation_id, status or status_code", async () => {
      await stored(payment());
      await stored(payment({ paymentId: "pay-2" }));
      await stored(payment({ operation: "refund" }));
      await stored(payment({ operationId: "op-1" }));
      await stored(payment({ status: "success" }));
      await stored(payment({ statusCode: "waiting_for_redirect" }));
      assert.equal((await published()).length, 6);
    });

    it("stores a callback after an answer of the same content, but no answer after the callback", async () => {
      await stored(payment({ source: "response" }));
      await stored(payment());
      const response = await append(payment({ source: "response" }));
      assert.equal(response.outcome, "duplicate");
      const reconciled = await append(payment({ source: "reconciliation" }));
      assert.equal(reconciled.outcome, "duplicate");
      assert.deepEqual(await published(), ["payment:pending", "payment:pending"]);
    });

    it("stores no answer that would lower the rank of its operation", async () => {
      await stored(payment({ status: "success" }));
      for (const source of ["response", "reconciliation"] as const) {
        const { outcome } = await append(payment({ status: "pending", source }));
        assert.equal(outcome, "duplicate");
      }
      assert.deepEqual(await published(), ["payment:success"]);
    });
  });

  describe("state", () => {
    it("is unknown before the first event", async () => {
      assert.equal(await snapshotOf(), undefined);
      await stored(payment());
      assert.equal(await snapshotOf("order-2"), undefined);
      assert.equal(await snapshotOf("order-1", EventKind.PAYOUT), undefined);
    });

    it("is the same after any order of six events, however often each is delivered", async () => {
      const entries = [
        payment({ status: "init" }),
        payment({ status: "pending", statusCode: "waiting_for_redirect" }),
        payment({ status: "success" }),
        payment({ paymentId: "pay-0", status: "failure" }),
        payment({ operation: "refund", status: "pending" }),
        payment({ operation: "refund", status: "success" }),
      ];
      const expected = ["payment:failure pay-0", "payment:success pay-1", "refund:success pay-1"];
      const check = async (order: readonly Entry[], index: number) => {
        const externalId = `order-${index}`;
        const suffixed = order.map((entry) => ofAnother(entry, externalId));
        // Every order is repeated once; some ten times, and also between the first deliveries.
        const isOften = index % 40 === 0;
        const delivered = suffixed.flatMap((entry, at) => [
          entry,
          ...(isOften ? redelivered(suffixed.slice(0, at + 1)) : []),
        ]);
        for (const entry of delivered) await append(entry);
        const repeats = isOften ? redelivered(suffixed) : suffixed;
        await Promise.all(repeats.map((entry) => append(entry)));
        const snapshot = await snapshotOf(externalId);
        assert(snapshot);
        const states = snapshot.states.map(
          ({ event, subjectId }) => `${step(event)} ${subjectId.split("/")[0]}`,
        );
        assert.deepEqual(states.sort(), expected);
        assert.equal(await currentStep(externalId), "payment:success");
        const history = await log.history(account, EventKind.PAYMENT, externalId, 100);
        assert.deepEqual(cursors(history), [...new Set(cursors(history))].sort());
        assert.equal(history.length, entries.length);
      };
      // Many orders run concurrently.
      const orders = [...permutations(entries).entries()];
      const worker = async () => {
        for (let next = orders.pop(); next; next = orders.pop()) await check(next[1], next[0]);
      };
      await Promise.all(Array.from({ length: 24 }, worker));
    });

    it("keeps the success of the second attempt over a late failure of the first", async () => {
      await stored(payment({ paymentId: "first", status: "pending" }));
      await stored(payment({ paymentId: "second", status: "success" }));
      await stored(payment({ paymentId: "first", status: "failure" }));
      assert.equal(await currentStep(), "payment:success");
    });

    it("shows the attempt that began last while none succeeded", async () => {
      await stored(payment({ paymentId: "first", status: "pending" }));
      await stored(payment({ paymentId: "second", status: "pending" }));
      await stored(payment({ paymentId: "first", status: "failure" }));
      assert.equal(await currentStep(), "payment:pending");
      await stored(payment({ paymentId: "second", status: "failure" }));
      const snapshot = await snapshotOf();
      assert.equal(snapshot && currentEvent(snapshot)?.paymentId, "second");
    });

    it("is not overwritten by a refund, which is an event of its own", async () => {
      await stored(payment({ status: "success" }));
      const refund = await stored(payment({ operation: "refund", status: "success" }));
      assert.equal(await currentStep(), "payment:success");
      const snapshot = await snapshotOf();
      assert.deepEqual(
        snapshot?.states.map(({ operation }) => operation),
        ["payment", "refund"],
      );
      assert.equal(snapshot?.cursor, refund.cursor);
    });

    it("does not change with a late callback, which is stored and delivered", async () => {
      const success = await stored(payment({ status: "success" }));
      const late = await stored(payment({ status: "pending" }));
      assert.equal(await currentStep(), "payment:success");
      const [delivered] = await take(await read(order1, success.cursor), 1);
      assert.equal(delivered?.cursor, late.cursor);
    });

    for (const [first, second] of [
      ["success", "failure"],
      ["failure", "success"],
    ] as const) {
      it(`has a conflict for ${second} after ${first}, and success wins`, async () => {
        assert.equal((await append(payment({ status: first }))).conflict, false);
        const { outcome, conflict } = await append(payment({ status: second }));
        assert.deepEqual({ outcome, conflict }, { outcome: "stored", conflict: true });
        assert.equal(await currentStep(), "payment:success");
        const history = await log.history(account, EventKind.PAYMENT, "order-1", 10);
        assert.deepEqual(steps(history), [`payment:${first}`, `payment:${second}`]);
      });
    }

    it("has no conflict for two partial refunds with different operation ids", async () => {
      const refund = { operation: "refund", operationId: "r-1", status: "success" } as const;
      await stored(payment(refund));
      const second = { ...refund, operationId: "r-2" };
      assert.equal((await append(payment({ ...second, status: "failure" }))).conflict, false);
      const answer = payment({
        ...second,
        operationId: "r-3",
        status: "pending",
        source: "response",
      });
      assert.equal((await append(answer)).outcome, "stored");
    });

    it("has the cursor of the first event of each operation", async () => {
      const first = await stored(payment({ status: "pending" }));
      await stored(payment({ status: "success" }));
      const snapshot = await snapshotOf();
      assert.equal(snapshot?.states[0]?.since, first.cursor);
    });

    it("keeps payments and payouts of the same external id apart", async () => {
      await stored(payment({ externalId: "same" }));
      await stored(payout({ externalId: "same", status: "success" }));
      const states = (await snapshotOf("same", EventKind.PAYOUT))?.states ?? [];
      assert.deepEqual(
        states.map(({ event }) => step(event)),
        ["payout:success"],
      );
      assert.equal(await currentStep("same"), "payment:pending");
    });
  });

  describe("the payment state", () => {
    const told = async () => {
      const { facts } = (await log.snapshot(account, EventKind.PAYMENT, "order-1")) ?? {};
      return facts && PaymentStateSchema.value[paymentState(facts)]?.localName;
    };
    const statesOf = async (entries: readonly Entry[]) => {
      const states: unknown[] = [];
      for (const entry of entries) states.push(stateOn(await stored(entry)));
      return states;
    };
    const refund = (operationId: string, amount: string) =>
      payment({ operation: "refund", operationId, amount, status: "success" });

    it("counts a refund once, however often it is reported", async () => {
      await stored(payment({ status: "success", amount: "10.00" }));
      const again = payment({
        ...{ operation: "refund", operationId: "r-1", amount: "5.00", status: "success" },
        bytes: "in other words",
        statusCode: "again",
      });
      assert.equal(stateOn(await stored(refund("r-1", "5.00"))), "PARTIALLY_REFUNDED");
      assert.equal(stateOn(await stored(again)), "PARTIALLY_REFUNDED");
      assert.equal(stateOn(await stored(refund("r-2", "5.00"))), "REFUNDED");
    });

    it("follows the answer that says whether it is held, not the note of a hold", async () => {
      await holdBy("order-1", "call-1");
      const states = await statesOf([
        payment({ paymentId: "a", status: "failure", source: "response", held: true }),
        payment({ paymentId: "b", source: "response", held: false }),
        // The callback does not say whether it is held, so the answer about its attempt counts.
        payment({ paymentId: "b", status: "success" }),
      ]);
      assert.deepEqual(states, ["FAILED", "PENDING", "PAID"]);
    });

    it("ignores the note of a hold for another external id, or for a payout", async () => {
      await holdBy("order-2", "call-1");
      assert.equal(stateOn(await stored(payment({ status: "success" }))), "PAID");
      await holdBy("payout-1", "call-1");
      assert.equal(stateOn(await stored(payout({ status: "success" }))), "PAID");
    });

    describe("what is stored settles the calls whose outcome it shows", () => {
      const { UNKNOWN, UNSPECIFIED, SETTLED } = CallOutcome;
      const begin = async (id: string) => {
        const about = { id, method: "CreatePayment", kind: EventKind.PAYMENT } as const;
        const call = { ...about, externalId: "order-1", leaseMs: 60_000 };
        return log.begin(account, call);
      };
      const begun = async (id: string) => {
        const started = await begin(id);
        assert.ok(started.kind === "started");
        return started.intent;
      };
      const outcomes = async () =>
        (await log.history(account, EventKind.PAYMENT, "order-1", 10)).map(
          ({ callOutcome }) => callOutcome,
        );
      const open = async () => (await log.known(account, EventKind.PAYMENT, "order-1")).intents;

      it("a callback settles a lost call", async () => {
        await log.end(account, await begun("call-1"), { state: "unknown" });
        await log.append(account, payment({ status: "failure" }));
        assert.deepEqual(await open(), []);
        assert.deepEqual(await outcomes(), [UNKNOWN, UNSPECIFIED, SETTLED]);
      });

      it("a call whose outcome is known by then is not published as UNKNOWN", async () => {
        const intent = await begun("call-1");
        await log.append(account, payment({ status: "failure" }));
        assert.equal((await open()).length, 1, "its own answer is to come");
        await log.end(account, intent, { state: "unknown" });
        assert.deepEqual(await open(), []);
        assert.deepEqual(await outcomes(), [UNSPECIFIED, SETTLED]);
      });

      for (const [status, kind] of [
        ["success", "started"],
        ["failure", "inFlight"],
      ] as const) {
        it(`the next call finds ${kind} after a ${status} of a running one`, async () => {
          await begun("call-1");
          await log.append(account, payment({ status }));
          assert.equal((await begin("call-2")).kind, kind);
          assert.equal((await open()).length, 1);
        });
      }
    });

    describe("the note of a hold", () => {
      const paid = { status: "success", amount: "10.00" } as const;
      const answer = { ...paid, source: "response", call: "call-1" } as const;

      it("makes its payment AUTHORIZED, and an answer that agrees is a duplicate", async () => {
        await holdBy("order-1", "call-1");
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        assert.equal((await append(payment({ ...answer, held: true }))).outcome, "duplicate");
        assert.equal(await told(), "AUTHORIZED");
      });

      it("does not count for a call that made no payment or was not done", async () => {
        const held = await holdBy("order-1", "call-1");
        await holdBy("order-1", "call-2", "CreateRecurrentPayment");
        const refused = { state: "closed", key: "free" } as const;
        await log.end(account, held, refused);
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        const call = { id: "call-2", kind: EventKind.PAYMENT, externalId: "order-1" };
        const notDone = await stored(callOutcomeEntry(call, CallOutcome.NOT_DONE));
        assert.equal(stateOn(notDone), "PAID");
        assert.equal(await told(), "PAID");
      });

      it("does not apply to later payments once events have settled its call", async () => {
        for (const [status, state] of [
          ["failure", "FAILED"],
          ["success", "AUTHORIZED"],
        ] as const) {
          const call = { id: `call-${status}`, kind: EventKind.PAYMENT, externalId: status };
          const first = { ...paid, externalId: status, paymentId: `a-${status}`, status };
          await holdBy(status, call.id);
          await stored(payment(first));
          const settled = callOutcomeEntry(call, CallOutcome.SETTLED, true);
          assert.equal(stateOn(await stored(settled)), state);
          // The same in other bytes, and still without saying whether it is held.
          const again = payment({ ...first, statusCode: "again", bytes: status });
          assert.equal(stateOn(await stored(again)), state);
          const second = payment({ ...paid, externalId: status, paymentId: `b-${status}` });
          assert.equal(stateOn(await stored(second)), "PAID");
        }
      });

      it("applies to a payment that becomes known after its call was published as SETTLED", async () => {
        const call = { id: "call-1", kind: EventKind.PAYMENT, externalId: "order-1" };
        await holdBy("order-1", call.id);
        await stored(callOutcomeEntry(call, CallOutcome.SETTLED));
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        // By now it is known which payment the call made: the note ends.
        await append(callOutcomeEntry(call, CallOutcome.SETTLED, true));
        const second = payment({ ...paid, paymentId: "b" });
        assert.equal(stateOn(await stored(second)), "PAID");
      });

      it("gives way to an answer which says that the payment is not held", async () => {
        await holdBy("order-1", "call-0");
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        assert.equal(stateOn(await stored(payment({ ...answer, held: false }))), "PAID");
        assert.equal(await told(), "PAID");
      });

      for (const [what, late] of [
        ["a repeat", payment({ ...answer, held: true })],
        ["what comes late", payment({ ...answer, status: "pending", held: true })],
      ] as const) {
        it(`may be missing if the answer says that it is held, even as ${what}`, async () => {
          assert.equal(stateOn(await stored(payment(paid))), "PAID");
          assert.equal(stateOn(await stored(late)), "AUTHORIZED");
          assert.equal(await told(), "AUTHORIZED");
          assert.equal(await currentStep(), "payment:success");
          assert.equal((await append(late)).outcome, "duplicate");
        });
      }
    });

    it("stays PAID after the cancellation of a failed attempt", async () => {
      await stored(payment({ status: "success" }));
      for (let i = 0; i < 20; i++) {
        await stored(payment({ paymentId: `p-${i}`, status: "failure" }));
      }
      const cancel = payment({ paymentId: "p-19", operation: "cancel", status: "success" });
      assert.equal(stateOn(await stored(cancel)), "PAID");
      const all = await take(await read(everything, "earliest"), 22);
      assert.deepEqual(all.slice(-2).map(stateOn), ["PAID", "PAID"]);
    });

    it("is UNKNOWN after a lost answer until the call's outcome is known", async () => {
      const call = { id: "call-1", kind: EventKind.PAYMENT, externalId: "order-1" };
      const states = await statesOf([
        payment({ status: "failure" }),
        callOutcomeEntry(call, CallOutcome.UNKNOWN),
        callOutcomeEntry(call, CallOutcome.NOT_DONE),
      ]);
      assert.deepEqual(states, ["FAILED", "UNKNOWN", "FAILED"]);
    });

    it("is PAID, and final, for is_success without a status", async () => {
      const event = await stored(payment({ status: "unspecified", isSuccess: true }));
      assert.deepEqual([event.final, stateOn(event)], [true, "PAID"]);
      const control = payment({ paymentId: "b", status: "unspecified", isSuccess: false });
      assert.equal((await stored(control)).final, false);
    });

    it("is not changed by an operation that is not known, each word of which is a line", async () => {
      const told = { status: "success", amount: "10.00" } as const;
      await stored(payment(told));
      const chargeback = await stored(payment({ ...told, operation: "chargeback" }));
      assert.deepEqual([chargeback.final, stateOn(chargeback)], [false, "PAID"]);
      const reversal = await stored(payment({ ...told, operation: "reversal" }));
      assert.deepEqual([reversal.final, stateOn(reversal)], [false, "PAID"]);
      const again = payment({ ...told, operation: "Chargeback", bytes: "in other words" });
      assert.equal((await append(again)).outcome, "duplicate");
      // A name of the log's own is a word of the service's like any other.
      const call = await stored(payment({ ...told, operation: "call", status: "pending" }));
      assert.equal(stateOn(call), "PAID");
      assert.deepEqual(await lines(), [
        ["payment", "success", []],
        ["other:chargeback", "success", [["operation", "chargeback"]]],
        ["other:reversal", "success", [["operation", "reversal"]]],
        ["other:call", "pending", [["operation", "call"]]],
      ]);
      const snapshot = await log.snapshot(account, EventKind.PAYMENT, "order-1");
      const shown = snapshot && currentEvent(snapshot);
      assert.equal(shown && step(shown), "payment:success");
    });

    it("is UNSPECIFIED when only an operation that is not known is known", async () => {
      const event = await stored(payment({ operation: "chargeback", status: "success" }));
      assert.deepEqual([event.final, stateOn(event)], [false, "UNSPECIFIED"]);
      assert.deepEqual(await log.unfinished(account, 0, 10), []);
    });

    for (const source of ["callback", "reconciliation"] as const) {
      it(`is not changed by a status that is not known, whose word a ${source} leaves`, async () => {
        const told = { source, operationId: "op-1" };
        for (const [status, known] of [
          ["expired", ""],
          ["init", "init"],
          ["expired", "init"],
          ["pending", "pending"],
          ["expired", "pending"],
          ["reversed", "pending"],
        ] as const) {
          const bytes = `${status} after ${known}`;
          const entry = payment({ ...told, status, statusCode: known, bytes });
          const { outcome, event } = await append(entry);
          assert.equal(outcome, "stored", bytes);
          assert.deepEqual([event?.final, event && stateOn(event)], [false, "PENDING"], bytes);
          const words = known === status ? [] : [["details.status", status]];
          assert.deepEqual(await lines(), [["payment", known, words]], bytes);
        }
        const again = payment({ ...told, status: "REVERSED", statusCode: "pending" });
        assert.equal((await append(again)).outcome, "duplicate");
        const [open] = await log.unfinished(account, 0, 10);
        assert.equal(open?.operation, "payment", "it is looked up");

        const paid = await stored(payment({ ...told, status: "success" }));
        assert.equal(stateOn(paid), "PAID");
        assert.deepEqual(await lines(), [["payment", "success", []]]);
        const late = await stored(payment({ ...told, status: "expired", statusCode: "late" }));
        assert.deepEqual([late.final, stateOn(late)], [false, "PAID"]);
        assert.deepEqual(await lines(), [["payment", "success", [["details.status", "expired"]]]]);
        assert.deepEqual(await log.unfinished(account, 0, 10), []);
      });
    }

    it("stays FAILED through a status that is not known", async () => {
      await stored(payment({ status: "failure" }));
      const event = await stored(payment({ status: "expired" }));
      assert.equal(stateOn(event), "FAILED");
      assert.deepEqual(await lines(), [["payment", "failure", [["details.status", "expired"]]]]);
    });

    /** Operation, status and words of each operation, as any process knows them. */
    async function lines() {
      const snapshot = await log.snapshot(account, EventKind.PAYMENT, "order-1");
      return snapshot?.facts.operations.map(({ operation, status, words }) => [
        operation,
        status,
        words,
      ]);
    }

    it("stays PAID when only the receipt changes, which is an event of its own", async () => {
      const told = { status: "success", amount: "1.00" } as const;
      await stored(payment({ ...told, receipt: "pending" }));
      const changed = await stored(payment({ ...told, receipt: "success" }));
      assert.equal(stateOn(changed), "PAID");
      const again = payment({ ...told, receipt: "success", bytes: "in other words" });
      assert.equal((await append(again)).outcome, "duplicate");
    });

    it("stays PAID through any number of failures, of which the newest are kept", async () => {
      await stored(payment({ paymentId: "paid", status: "success" }));
      const more = 7;
      let last: Event | undefined;
      for (let i = 0; i < maxFailures + more; i++) {
        last = await stored(payment({ paymentId: `p-${i}`, status: "failure" }));
      }
      assert.equal(last && stateOn(last), "PAID");
      const snapshot = await log.snapshot(account, EventKind.PAYMENT, "order-1");
      assert.equal(snapshot?.facts.folded, more);
      const kept = ["paid", ...Array.from({ length: maxFailures }, (_, i) => `p-${i + more}`)];
      assert.deepEqual(
        snapshot?.states.map(({ subjectId }) => subjectId),
        kept,
      );
      assert.deepEqual(
        snapshot?.facts.operations.map(({ subjectId }) => subjectId),
        kept,
      );
      assert.equal(await currentStep(), "payment:success");
    });
  });
});

/** The same step of another payment, with an identity and a digest of its own. */
function ofAnother(entry: Entry, externalId: string): Entry {
  return {
    ...entry,
    externalId,
    event: { ...entry.event, externalId },
    subjectId: `${entry.subjectId}/${externalId}`,
    identity: `${entry.identity}/${externalId}`,
    digest: `${entry.digest}/${externalId}`,
  };
}

/** The entries ten times over. */
function redelivered(entries: readonly Entry[]): Entry[] {
  return Array.from({ length: 10 }, () => entries).flat();
}

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length <= 1) return [[...items]];
  return items.flatMap((item, at) =>
    permutations(items.toSpliced(at, 1)).map((rest) => [item, ...rest]),
  );
}

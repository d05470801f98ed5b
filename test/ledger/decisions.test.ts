import assert from "node:assert/strict";
import { afterEach, beforeEach, describe, it } from "node:test";
import { CallOutcome, type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentStateSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { maxFailures } from "../../src/ledger/facts.ts";
import type { Intent } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Appended, Entry } from "../../src/ledger/log.ts";
import { paymentState } from "../../src/ledger/payment-state.ts";
import type { Kind } from "../../src/model/kinds.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { valuesOf } from "../values-of.ts";
import { createMemoryLedger } from "./create.ts";
import { currentStep, payment, payout, snapshotOf, stateOn, type Told } from "./entries.ts";
import { callBegun, newCall, started } from "./new-call.ts";

const account = "shop";

/** What the ledger decides about each step. Stores know nothing of it, so memory stands for all. */
describe("decisions of the ledger", () => {
  let log: Ledger;
  beforeEach(() => {
    log = createMemoryLedger({ retentionMs: 7 * 86_400_000 });
  });
  afterEach(() => log.close());

  const append = (entry: Entry): Promise<Appended> => log.append(account, entry);
  const stored = async (entry: Entry): Promise<Event> => {
    const { outcome, event } = await append(entry);
    assert.equal(outcome, "stored");
    assert(event);
    return event;
  };
  /** Begins a call with `confirm: false`. */
  const holdBy = async (
    externalId: string,
    id: string,
    method: MoneyMethod = "CreatePayment",
  ): Promise<Intent> => await callBegun(log, account, { id, method, externalId, hold: true });

  it("takes little time for a payment with hundreds of calls that stay pending", async () => {
    const before = process.cpuUsage();
    for (let n = 0; n < 300; n++) {
      const intent = await callBegun(log, account, { externalId: "order-1" });
      const ending = { state: "pending", subjectId: `pay-${n}`, key: "keep" } as const;
      const answer = payment({ paymentId: `pay-${n}`, source: "response" });
      await log.end(account, intent, ending, answer);
    }
    const { user } = process.cpuUsage(before);
    assert.ok(user < 2_000_000, `${user / 1_000_000} s`);
  });

  /** The open calls of an external_id. */
  const open = async (externalId = "order-1", kind: Kind = EventKind.PAYMENT) => {
    const { calls } = await log.known(account, kind, externalId);
    return calls.map(({ method, state, subjectId }) => `${method} ${state} ${subjectId}`);
  };

  it("opens a call for each operation that is not at its end, until it is", async () => {
    await stored(payment({ paymentId: "a", status: "init" }));
    await stored(payment({ paymentId: "b" }));
    await stored(payment({ paymentId: "a", operation: "confirm" }));
    await stored(payout({ status: "processing" }));
    const [a, b, c] = [
      "CreatePayment pending a",
      "CreatePayment pending b",
      "ConfirmPayment pending a",
    ];
    assert.deepEqual(await open(), [a, b, c]);
    await stored(payment({ paymentId: "a" }));
    assert.deepEqual(await open(), [a, b, c], "once for each");
    assert.deepEqual(await open("payout-1", EventKind.PAYOUT), ["RequestPayout pending tx-1"]);
    const { calls } = await log.known(account, EventKind.PAYMENT, "order-1");
    assert.ok(calls.every(({ dueMs, startedAtMs }) => dueMs > startedAtMs));
    await stored(payment({ paymentId: "a", status: "success" }));
    await stored(payout({ status: "failure" }));
    assert.deepEqual(await open("payout-1", EventKind.PAYOUT), []);
    assert.deepEqual(await open(), [c], "a success settles each CreatePayment");
    // A late event does not reopen a final operation.
    await stored(payment({ paymentId: "b", statusCode: "late" }));
    await stored(payment({ paymentId: "a", operation: "confirm", status: "failure" }));
    assert.deepEqual(await open(), []);
  });

  it("leaves a call within its lease open, and tells nothing of it, when its end is called back", async () => {
    const call = started(await log.begin(account, newCall({ externalId: "order-1" })));
    await stored(payment({ status: "success" }));
    assert.deepEqual(await open(), ["CreatePayment running "]);
    const answer = payment({ status: "success", source: "response" });
    await log.end(account, call, { state: "closed", key: "keep" }, answer);
    assert.deepEqual(await open(), []);
    assert.equal((await log.history(account, EventKind.PAYMENT, "order-1", 9)).length, 1);
  });

  it("opens calls for up to a hundred operations at a time, and for others as these end", async () => {
    for (let n = 0; n <= 100; n++) await stored(payment({ paymentId: `pay-${n}` }));
    assert.equal((await open()).length, 100);
    await stored(payment({ paymentId: "pay-0", status: "failure" }));
    assert.equal((await open()).length, 100);
    assert.equal((await open()).at(-1), "CreatePayment pending pay-100");
  });

  it("opens another call for what is pending again once the payment was taken back", async () => {
    const openNow = async () => (await log.known(account, EventKind.PAYMENT, "order-1")).calls;
    await stored(payment({ paymentId: "b" }));
    const [first] = await openNow();
    await stored(payment({ paymentId: "a", status: "success" }));
    assert.deepEqual(await openNow(), []);
    await stored(payment({ paymentId: "a", operation: "cancel", status: "success" }));
    const [second] = await openNow();
    assert.deepEqual([first?.subjectId, second?.subjectId], ["b", "b"]);
    assert.notEqual(first?.id, second?.id);
  });

  it("opens no call for refunds, cancellations and look-ups, or a text that is no external_id", async () => {
    for (const operation of ["refund", "cancel", "lookup"]) await stored(payment({ operation }));
    assert.deepEqual(await open(), []);
    const externalId = "x".repeat(900_000);
    await stored(payment({ externalId }));
    assert.deepEqual(await open(externalId), []);
    const found = await snapshotOf(log, account, EventKind.PAYMENT, externalId);
    assert.equal(found?.operations[0]?.subjectId, "pay-1");
  });

  it("leaves a pending payment to the running call that may have made it, and then to that call", async () => {
    const intent = await callBegun(log, account, { externalId: "order-1" });
    await stored(payment({ paymentId: "a" }));
    await stored(payment({ paymentId: "b" }));
    assert.deepEqual(await open(), ["CreatePayment running "]);
    const ending = { state: "pending", subjectId: "b", key: "keep" } as const;
    await log.end(account, intent, ending, payment({ paymentId: "b", source: "response" }));
    assert.deepEqual(await open(), ["CreatePayment pending b", "CreatePayment pending a"]);
  });

  it("begins a call once, however often it is asked to", async () => {
    const call = newCall({ externalId: "order-1" });
    const first = started(await log.begin(account, call));
    assert.deepEqual(started(await log.begin(account, call)), first);
    assert.deepEqual(await open(), ["CreatePayment running "]);
  });

  it("does not begin a call that has ended, as when the begin reaches the store late", async () => {
    const call = newCall({ externalId: "order-1" });
    const elsewhere = createMemoryLedger({ retentionMs: 1_000 });
    const intent = started(await elsewhere.begin(account, call));
    await elsewhere.close();
    await log.end(account, intent, { state: "closed", key: "free" });
    await assert.rejects(log.begin(account, call), { code: "UNAVAILABLE" });
    await log.adopt(account, intent, 0);
    assert.deepEqual(await open(), []);
    await callBegun(log, account, { externalId: "order-1" });
  });

  it("settles a call that is adopted after what it made became known", async () => {
    const elsewhere = createMemoryLedger({ retentionMs: 1_000 });
    const intent = await callBegun(elsewhere, account, { externalId: "order-1" });
    await elsewhere.close();
    await stored(payment({ status: "success" }));
    await log.adopt(account, intent, 2 * intent.leaseMs);
    assert.deepEqual(await open(), []);
  });

  it("stores a callback with the same bytes once, even if it is read differently", async () => {
    await stored(payment({ bytes: "the same" }));
    const again = { ...payment({ bytes: "the same" }), identity: "read differently" };
    assert.deepEqual(await append(again), { outcome: "duplicate", conflict: false });
  });

  const [success, failure] = [{ status: "success" }, { status: "failure" }];
  const refundOf = (operationId: string, told: Told) =>
    ({ ...told, operation: "refund", operationId }) as const;
  const again: readonly (readonly [what: string, outcome: string, ...told: Told[]])[] = [
    ["a callback says what an earlier one said", "duplicate", {}, { bytes: "in other words" }],
    ["a callback says what an answer said", "stored", { source: "response" }, {}],
    ["an answer says what a callback said", "duplicate", {}, { source: "response" }],
    [
      "a look-up says what an answer said",
      "duplicate",
      { source: "response" },
      { source: "reconciliation" },
    ],
    ["a callback is late", "stored", success, {}],
    ["a look-up is late", "duplicate", success, { source: "reconciliation" }],
    ["an answer has another status code", "stored", {}, { statusCode: "new", source: "response" }],
    ["a success follows a failure", "stored conflict", failure, success],
    ["a failure follows a success", "stored conflict", success, failure],
    ["another attempt fails", "stored", success, { ...failure, paymentId: "another" }],
    ["another refund fails", "stored", refundOf("r-1", success), refundOf("r-2", failure)],
    [
      "an end has another operation_id",
      "stored",
      { ...success, operationId: "o-1" },
      { ...failure, operationId: "o-2" },
    ],
  ];
  for (const [what, expected, ...told] of again) {
    it(`says ${expected} when ${what}`, async () => {
      const all: Appended[] = [];
      for (const one of told) all.push(await append(payment(one)));
      const { outcome, conflict } = all.at(-1) ?? assert.fail();
      assert.equal(`${outcome}${conflict ? " conflict" : ""}`, expected);
    });
  }

  it("keeps of each operation its success, else the last of what is furthest", async () => {
    const refund = (operationId: string, status: string) =>
      payment(refundOf(operationId, { status }));
    const made: string[] = [];
    for (const entry of [
      ...[{ status: "init" }, {}, failure, success, { ...failure, statusCode: "late" }].map(
        payment,
      ),
      ...[refund("r-1", "pending"), refund("r-2", "failure"), refund("r-2", "init")],
    ]) {
      made.push((await stored(entry)).cursor);
    }
    const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
    assert.deepEqual(
      snapshot?.operations.map(({ operationId, status, since, place, event }) => [
        ...[operationId, status, made.indexOf(since), made.indexOf(place), event.cursor === place],
      ]),
      [
        ["", "success", 0, 3, true],
        ["r-1", "pending", 5, 5, true],
        ["r-2", "failure", 6, 6, true],
      ],
    );
    assert.equal(snapshot?.cursor, made.at(-1));
  });

  describe("the payment state", () => {
    const told = async () => {
      const facts = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
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
        // Without its amount, which is known.
        ...{ operation: "refund", operationId: "r-1", status: "success" },
        bytes: "in other words",
        statusCode: "again",
      });
      assert.equal(stateOn(await stored(refund("r-1", "5.00"))), "PARTIALLY_REFUNDED");
      assert.equal(stateOn(await stored(again)), "PARTIALLY_REFUNDED");
      assert.equal(stateOn(await stored(refund("r-2", "5.00"))), "REFUNDED");
    });

    it("adds up confirmations that each move a part, and a refund of one part is not all", async () => {
      await holdBy("order-1", "call-1");
      const confirm = (operationId: string, amount: string) =>
        payment({ operation: "confirm", operationId, amount, status: "success" });
      const answer = payment({ operation: "confirm", status: "success", source: "response" });
      const states = await statesOf([
        payment({ status: "success", amount: "10.00", source: "response", held: true }),
        // It names no operation_id, as its callback does.
        ...[answer, confirm("c-1", "6.00"), confirm("c-2", "4.00")],
        ...[refund("r-1", "4.00"), refund("r-2", "6.00")],
      ]);
      const paid = ["PAID", "PAID", "PAID"];
      assert.deepEqual(states, ["AUTHORIZED", ...paid, "PARTIALLY_REFUNDED", "REFUNDED"]);
      const facts = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
      const confirmed = facts?.operations.filter(({ operation }) => operation === "confirm");
      assert.deepEqual(valuesOf(confirmed, "amount"), ["6.00", "4.00"]);
    });

    it("counts a call that another's success settled as a hold, if it made one even so", async () => {
      await stored(payment({ paymentId: "a", status: "success", source: "response", held: true }));
      // The merchant cancels it, and a second one leaves before the gateway hears of that.
      await log.end(account, await holdBy("order-1", "call-1"), { state: "unknown" });
      assert.deepEqual(await open(), []);
      const states = await statesOf([
        payment({ paymentId: "b", status: "success" }),
        payment({ paymentId: "a", operation: "cancel", status: "success" }),
      ]);
      assert.deepEqual(states, ["AUTHORIZED", "AUTHORIZED"]);
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

    describe("what is stored settles the calls whose outcome it shows", () => {
      const { UNKNOWN, UNSPECIFIED, SETTLED } = CallOutcome;
      const begin = (id: string) => log.begin(account, newCall({ id, externalId: "order-1" }));
      const begun = async (id: string) => started(await begin(id));
      const outcomes = async () =>
        (await log.history(account, EventKind.PAYMENT, "order-1", 10)).map(
          ({ callOutcome }) => callOutcome,
        );
      const open = async () => (await log.known(account, EventKind.PAYMENT, "order-1")).calls;

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
      /** The outcome of a call that the newest event tells, and the state on it. */
      const lastTold = async (externalId = "order-1") => {
        const [event] = await log.history(account, EventKind.PAYMENT, externalId, 1);
        return [event?.callOutcome, event && stateOn(event)];
      };

      it("does not apply to a payment that is known when its call begins", async () => {
        assert.equal(stateOn(await stored(payment({ status: "success" }))), "PAID");
        await holdBy("order-1", "call-1");
        assert.equal(await told(), "PAID");
      });

      it("of an earlier call stays with what that made when another one begins", async () => {
        await holdBy("order-1", "call-1");
        assert.equal(stateOn(await stored(payment({ status: "success" }))), "AUTHORIZED");
        await holdBy("order-1", "call-2", "CreateRecurrentPayment");
        assert.equal(await told(), "AUTHORIZED");
      });

      it("does not count for a call that made no payment or was not done", async () => {
        const held = await holdBy("order-1", "call-1");
        const other = await holdBy("order-1", "call-2", "ConfirmPayment");
        await log.end(account, held, { state: "closed", key: "free" });
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        await log.end(account, other, { state: "unknown" });
        const look = { checks: 3, notFound: 3, inMs: 0, neverArrived: true };
        await log.looked(account, other, look);
        assert.deepEqual(await lastTold(), [CallOutcome.NOT_DONE, "PAID"]);
        assert.equal(await told(), "PAID");
      });

      it("does not apply to later payments once events have settled its call", async () => {
        for (const [status, state] of [
          ["failure", "FAILED"],
          ["success", "AUTHORIZED"],
        ] as const) {
          const first = { ...paid, externalId: status, paymentId: `a-${status}`, status };
          const held = await holdBy(status, `call-${status}`);
          await stored(payment(first));
          await log.end(account, held, { state: "unknown" });
          assert.deepEqual(await lastTold(status), [CallOutcome.SETTLED, state]);
          // The same in other bytes, and still without saying whether it is held.
          const again = payment({ ...first, statusCode: "again", bytes: status });
          assert.equal(stateOn(await stored(again)), state);
          const second = payment({ ...paid, externalId: status, paymentId: `b-${status}` });
          assert.equal(stateOn(await stored(second)), "PAID");
        }
      });

      it("applies to a payment that becomes known after its call was published as SETTLED", async () => {
        const held = await holdBy("order-1", "call-1");
        await log.end(account, held, { state: "unknown" });
        // Its late answer names no payment.
        const key = Buffer.from("answer");
        await log.end(account, held, { state: "pending", subjectId: "", key });
        assert.equal((await lastTold())[0], CallOutcome.SETTLED);
        assert.equal(stateOn(await stored(payment(paid))), "AUTHORIZED");
        // By now it is known which payment the call made: the note ends.
        const second = payment({ ...paid, paymentId: "b" });
        assert.equal(stateOn(await stored(second)), "PAID");
      });

      for (const [what, late] of [
        ["a repeat", payment({ ...answer, held: true })],
        ["what comes late", payment({ ...answer, status: "pending", held: true })],
      ] as const) {
        it(`may be missing if the answer says that it is held, even as ${what}`, async () => {
          assert.equal(stateOn(await stored(payment(paid))), "PAID");
          assert.equal(stateOn(await stored(late)), "AUTHORIZED");
          assert.equal(await told(), "AUTHORIZED");
          assert.equal(await currentStep(log), "payment:success");
          assert.equal((await append(late)).outcome, "duplicate");
        });
      }
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
      assert.equal(await currentStep(log), "payment:success");
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
        assert.deepEqual(await open(), ["CreatePayment pending pay-1"], "it is looked up");

        const paid = await stored(payment({ ...told, status: "success" }));
        assert.equal(stateOn(paid), "PAID");
        assert.deepEqual(await lines(), [["payment", "success", []]]);
        const late = await stored(payment({ ...told, status: "expired", statusCode: "late" }));
        assert.deepEqual([late.final, stateOn(late)], [false, "PAID"]);
        assert.deepEqual(await lines(), [["payment", "success", [["details.status", "expired"]]]]);
        assert.deepEqual(await open(), []);
      });
    }

    /** Operation, status and words of each operation, as any process knows them. */
    async function lines() {
      const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
      return snapshot?.operations.map(({ operation, status, words = [] }) => [
        operation,
        status,
        words,
      ]);
    }

    it("of a payout that is not final follows its newest status, whichever that is", async () => {
      const statuses = ["processing", "approved"];
      for (const told of [statuses, statuses.toReversed()]) {
        const externalId = told.join();
        for (const status of told) {
          const { outcome, conflict } = await append(payout({ externalId, status }));
          assert.deepEqual([outcome, conflict], ["stored", false]);
        }
        const facts = await snapshotOf(log, account, EventKind.PAYOUT, externalId);
        assert.deepEqual(valuesOf(facts?.operations, "status"), told.slice(1));
      }
    });

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
      const snapshot = await snapshotOf(log, account, EventKind.PAYMENT, "order-1");
      assert.equal(snapshot?.folded, more);
      const kept = ["paid", ...Array.from({ length: maxFailures }, (_, i) => `p-${i + more}`)];
      assert.deepEqual(valuesOf(snapshot?.operations, "subjectId"), kept);
      assert.equal(await currentStep(log), "payment:success");
    });
  });
});

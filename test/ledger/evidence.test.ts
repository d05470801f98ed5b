import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  callOf,
  conclude,
  giveUpCall,
  intentOfCall,
  settleAsPaid,
  settleCalls,
} from "../../src/ledger/calls.ts";
import { Change, Draft } from "../../src/ledger/change.ts";
import { addEntry, factsOf } from "../../src/ledger/entries.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import { knownStatesOf, markOfRefusal } from "../../src/ledger/evidence.ts";
import type { AlreadyPaid, Ending, Intent } from "../../src/ledger/intents.ts";
import type { Snapshot } from "../../src/ledger/log.ts";
import { openCallsOf, outcomeFlags } from "../../src/ledger/open-calls.ts";
import { paymentState } from "../../src/ledger/payment-state.ts";
import { newRecord, type PaymentRecord, recordKey } from "../../src/ledger/record.ts";
import type { MoneyMethod } from "../../src/model/money-methods.ts";
import { filledIn } from "../../src/stores/kernel.ts";

const externalId = "order";
const { PAYMENT } = EventKind;
const { PENDING, SUCCESS, FAILURE } = PaymentStatus;
const { RECURRENT, CONFIRM, CANCEL, REFUND } = PaymentOperation;
const ages = { retentionMs: 3_600_000, firstLookMs: 0, giveUpMs: 3_600_000 };

interface Told {
  readonly operation?: PaymentOperation;
  readonly operationId?: string;
  readonly amount?: string;
}

/**
 * One record whose calls stay open until `settle`, so that evidence can be seen. The clock advances
 * by a millisecond with each action.
 */
function books() {
  let nowMs = 1_000_000;
  let value: PaymentRecord = newRecord();
  const key = recordKey(PAYMENT, externalId);
  const step = (decide: (change: Change, draft: Draft) => void) => {
    nowMs++;
    const draft = new Draft(key, value, new Map());
    const change = new Change("token", nowMs, [draft], ages);
    decide(change, draft);
    const place = (n: number) =>
      `${nowMs.toString(16).padStart(12, "0")}${`${n}`.padStart(6, "0")}`;
    const places = change.events.map((_, n) => place(n));
    value = JSON.parse(filledIn(JSON.stringify(draft.value), "token", places, nowMs));
  };
  const intents = () => value.calls.map((call) => intentOfCall(key, call, value.marks));
  const known = () => {
    const snapshot = { ...knownStatesOf(value), cursor: "" } as Snapshot;
    const store = { known: async () => ({ intents: intents(), snapshot }) };
    return openCallsOf({ intents: store }, "default", PAYMENT, externalId);
  };
  return {
    begin(method: MoneyMethod = "CreatePayment"): Intent {
      step(() => {
        value.calls.push(
          callOf({
            ...{ id: randomUUID(), method, kind: PAYMENT, externalId, state: "running" },
            ...{ startedAtMs: nowMs, leaseUntilMs: nowMs + 60_000, subjectId: "", answered: [] },
            ...{ checks: 0, notFound: 0, needsOperator: false, keyDigest: "" },
          }),
        );
      });
      return intents().at(-1) as Intent;
    },
    end({ id }: Intent, ending: Ending) {
      step((change, draft) => conclude(change, draft, id, ending));
    },
    lose(method?: MoneyMethod): Intent {
      const intent = this.begin(method);
      this.end(intent, { state: "unknown" });
      return intent;
    },
    /** An operator has to look: the call holds no lock any more. */
    giveUp({ id }: Intent) {
      step((change, draft) => giveUpCall(change, draft, id));
    },
    /** Stores a callback. */
    tell(
      paymentId: string,
      status: PaymentStatus,
      { operation = PaymentOperation.PAYMENT, operationId = "", ...rest }: Told = {},
    ) {
      const details = { paymentId, status, operationId, currency: "UAH", ...rest };
      const payment = create(PaymentSchema, { externalId, operation, details });
      const entry = paymentEntry(payment, { source: EventSource.CALLBACK });
      assert.ok(entry);
      step((change, draft) => void addEntry(change, draft, entry));
    },
    /** Handles the service's answer that the external_id is already paid. */
    saidPaid(said: AlreadyPaid) {
      step((change, draft) => settleAsPaid(change, draft, said));
    },
    async flags() {
      return outcomeFlags((await known()).openCalls);
    },
    async state() {
      const { outcomeUnknown } = outcomeFlags((await known()).openCalls);
      return paymentState(factsOf(value), outcomeUnknown);
    },
    /** What the events show about a call. */
    async evidenceOf({ id }: Intent) {
      const { openCalls } = await known();
      return openCalls.find(({ intent }) => intent.id === id)?.evidence;
    },
    /** Settles the calls whose outcome the events show; returns those that are still open. */
    settle(): string[] {
      step((change, draft) => void settleCalls(change, draft, true));
      return intents().map(({ id, state }) => `${id} ${state}`);
    },
  };
}

/** The service refused the call, and named its payment or not. */
const refused = (paymentId?: string, method: MoneyMethod = "CreatePayment"): Ending => ({
  state: "closed",
  mark: markOfRefusal(method, paymentId),
  key: "keep",
});

test("a payment that began after the call is evidence for it", async () => {
  const b = books();
  const lost = b.lose();
  assert.equal(await b.evidenceOf(lost), undefined);
  b.tell("p1", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p1", mark: "p1" });
  b.tell("p1", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p1" });
});

test("a call within its lease, which may be sent yet, is settled by what it made alone", () => {
  const b = books();
  b.tell("p1", SUCCESS);
  b.begin();
  assert.equal(b.settle().length, 1, "p1 may be taken back before it is sent");
  b.tell("p2", SUCCESS);
  assert.deepEqual(b.settle(), []);
});

test("a success settles all calls; if it is taken back whole, calls that began after it are open", async () => {
  for (const [takenBack, amount, isStanding] of [
    [CANCEL, undefined, false],
    [REFUND, "10.00", false],
    [REFUND, "9.99", true],
  ] as const) {
    const b = books();
    const first = b.lose();
    b.tell("p1", SUCCESS, { amount: "10.00" });
    const second = b.lose();
    assert.equal((await b.evidenceOf(second))?.kind, "settled");
    b.tell("p1", SUCCESS, {
      operation: takenBack,
      operationId: "op",
      ...(amount && { amount }),
    });
    assert.deepEqual(await b.evidenceOf(first), {
      kind: "settled",
      mark: "p1",
    });
    assert.equal(
      (await b.evidenceOf(second))?.kind,
      isStanding ? "settled" : undefined,
      "the service may have taken another payment",
    );
    assert.deepEqual(b.settle(), isStanding ? [] : [`${second.id} unknown`]);
    if (isStanding) continue;
    b.tell("p2", SUCCESS, { amount: "10.00" });
    assert.deepEqual(b.settle(), []);
  }
});

test("an already-paid answer that may be about a success taken back earlier settles no call", async () => {
  const code = "transaction_already_paid";
  for (const [paymentId, settles] of [
    [undefined, false],
    ["p1", false],
    ["p2", true],
  ] as const) {
    const b = books();
    b.tell("p1", SUCCESS);
    b.tell("p1", SUCCESS, { operation: CANCEL });
    const lost = b.lose();
    b.saidPaid({ code, ...(paymentId && { paymentId }) });
    assert.deepEqual(b.settle(), settles ? [] : [`${lost.id} unknown`]);
    assert.equal(await b.state(), settles ? PaymentState.PAID : PaymentState.UNKNOWN);
  }
});

test("a late failure of an earlier, answered attempt is no evidence for this call", async () => {
  const b = books();
  b.end(b.begin(), refused("p1"));
  const lost = b.lose();
  b.tell("p1", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined);
  b.tell("p2", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
});

test("a failure is no evidence if it may be that of a refusal without a payment_id", async () => {
  const b = books();
  b.end(b.begin(), refused());
  const lost = b.lose();
  b.tell("p1", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined, "it may be the refused one's");
  b.tell("p2", FAILURE);
  assert.equal((await b.evidenceOf(lost))?.kind, "settled", "both cannot be");
});

test("after a refusal without a payment_id, a pending payment is evidence for the open call", async () => {
  const b = books();
  b.end(b.begin(), refused());
  const lost = b.lose();
  b.tell("p1", FAILURE);
  b.tell("p2", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p2", mark: "p2" });
});

test("a refusal without a payment_id accounts for one failure, also if that came before the call", async () => {
  const b = books();
  b.end(b.begin(), refused());
  b.tell("p1", FAILURE);
  const lost = b.lose();
  b.tell("p2", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
});

test("the failure of a payment that began before the call is no evidence for the call", async () => {
  const b = books();
  b.tell("p0", PENDING);
  const lost = b.lose();
  b.tell("p0", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined);
});

test("the success of a payment settles every CreatePayment, whichever call made it", async () => {
  const b = books();
  b.tell("p0", PENDING);
  const lost = b.lose();
  b.tell("p0", SUCCESS);
  assert.equal((await b.evidenceOf(lost))?.kind, "settled");
});

test("a call that another one's success settled may fail late, which is no evidence for the next call", async () => {
  const b = books();
  const first = b.lose();
  b.tell("p1", SUCCESS);
  assert.deepEqual(b.settle(), []);
  const second = b.lose();
  assert.deepEqual(b.settle(), [], "p1 stands, and is the first one's");
  b.tell("p1", SUCCESS, { operation: CANCEL });
  const third = b.lose();
  b.tell("p2", FAILURE);
  assert.deepEqual(b.settle(), [`${third.id} unknown`], `${second.id} may have made it`);
  b.tell("p3", SUCCESS);
  assert.deepEqual(b.settle(), [], first.id);
});

test("a payment that a call without a known payment may have made is told apart by its operation", async () => {
  for (const [ended, lostMethod, operation, settles] of [
    ["ConfirmPayment", "CreatePayment", PaymentOperation.PAYMENT, true],
    ["CreatePayment", "ConfirmPayment", CONFIRM, true],
    ["CreatePayment", "CreateRecurrentPayment", PaymentOperation.PAYMENT, false],
    ["CreateRecurrentPayment", "CreatePayment", PaymentOperation.PAYMENT, false],
    ["ConfirmPayment", "ConfirmPayment", CONFIRM, false],
  ] as const) {
    const b = books();
    b.end(b.begin(ended), refused(undefined, ended));
    const lost = b.lose(lostMethod);
    b.tell("p1", FAILURE, { operation, operationId: "o1" });
    assert.deepEqual(b.settle(), settles ? [] : [`${lost.id} unknown`], `${ended}, ${lostMethod}`);
  }
});

for (const order of ["earlier", "later"] as const) {
  test(`a payment of a call that began ${order}, running or answered, is no evidence for this call`, async () => {
    const b = books();
    const calls: Intent[] = [];
    if (order === "later") calls.push(b.lose("CreateRecurrentPayment"));
    const other = b.begin("CreateRecurrentPayment");
    if (order === "earlier") calls.push(b.lose("CreateRecurrentPayment"));
    const [lost] = calls;
    assert.ok(lost);
    b.tell("p1", SUCCESS, { operation: RECURRENT });
    assert.equal(await b.evidenceOf(lost), undefined, "the one that runs will tell by its answer");
    b.end(other, { state: "closed", mark: "p1", key: "keep" });
    assert.equal(await b.evidenceOf(lost), undefined, "it has told");
    b.tell("p2", SUCCESS, { operation: RECURRENT });
    assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
  });
}

test("a running call ends with the success that it made, and not with a failure", async () => {
  for (const status of [SUCCESS, FAILURE]) {
    const b = books();
    const running = b.begin("CreateRecurrentPayment");
    b.tell("p1", PENDING, { operation: RECURRENT });
    assert.deepEqual(b.settle(), [`${running.id} running`], "its answer is still to come");
    b.tell("p1", status, { operation: RECURRENT });
    const left = status === SUCCESS ? [] : [`${running.id} running`];
    assert.deepEqual(b.settle(), left, "a call that is not known yet may have failed");
    b.end(running, { state: "unknown" });
    assert.deepEqual(b.settle(), []);
  }
});

test("a running call does not end with what another call may have made", async () => {
  const isLeft = async (b: ReturnType<typeof books>, running: Intent) =>
    b.settle().includes(`${running.id} running`);

  const vague = books();
  vague.end(vague.begin("CreateRecurrentPayment"), {
    state: "pending",
    subjectId: "",
    key: "keep",
  });
  const givenUp = books();
  givenUp.giveUp(givenUp.lose("CreateRecurrentPayment"));
  const adopted = books();
  adopted.begin("CreateRecurrentPayment");
  for (const b of [vague, givenUp, adopted]) {
    const running = b.begin("CreateRecurrentPayment");
    b.tell("p1", SUCCESS, { operation: RECURRENT });
    assert.equal(await isLeft(b, running), true, "it may be the other's");
    b.tell("p2", SUCCESS, { operation: RECURRENT });
    assert.equal(await isLeft(b, running), false, "one of two is its own");
  }

  const confirmed = books();
  const answer = { state: "closed", mark: "confirm p1", key: "keep" } as const;
  confirmed.end(confirmed.begin("ConfirmPayment"), answer);
  const second = confirmed.begin("ConfirmPayment");
  confirmed.tell("p1", SUCCESS, { operation: CONFIRM, operationId: "o1" });
  assert.equal(await isLeft(confirmed, second), true, "the first one's answer named no operation");
});

test("a call takes a payment that goes on before one that failed", async () => {
  const b = books();
  const lost = b.lose();
  b.tell("p1", FAILURE);
  b.tell("p2", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p2", mark: "p2" });
});

test("a call that was given up claims no payment before the next call", async () => {
  const b = books();
  const first = b.lose();
  b.giveUp(first);
  const second = b.lose();
  b.tell("p1", PENDING);
  assert.deepEqual(await b.evidenceOf(second), { kind: "arrived", subjectId: "p1", mark: "p1" });
});

test("a failure ends a lost call, though a later one that was given up may have made it", async () => {
  const b = books();
  const first = b.lose();
  b.giveUp(b.lose());
  b.tell("p1", FAILURE);
  assert.equal((await b.evidenceOf(first))?.kind, "settled");
});

test("no operator has to look once the events show what became of a call", async () => {
  const b = books();
  const lost = b.lose();
  assert.deepEqual(await b.flags(), { outcomeUnknown: true, needsOperator: false });
  b.giveUp(lost);
  assert.deepEqual(await b.flags(), { outcomeUnknown: true, needsOperator: true });
  b.tell("p1", SUCCESS);
  assert.deepEqual(await b.flags(), { outcomeUnknown: false, needsOperator: false });
});

test("one payment settles only one of two lost calls, and the other stays unknown", async () => {
  const b = books();
  b.lose("CreateRecurrentPayment");
  const second = b.lose("CreateRecurrentPayment");
  b.tell("p1", SUCCESS, { operation: RECURRENT });
  assert.deepEqual(b.settle(), [`${second.id} unknown`]);
  assert.deepEqual(b.settle(), [`${second.id} unknown`], "not at the second look either");
  b.tell("p2", FAILURE, { operation: RECURRENT });
  assert.deepEqual(b.settle(), []);
});

test("a pending payment makes only the first of two lost calls pending", async () => {
  const b = books();
  const first = b.lose("CreateRecurrentPayment");
  const second = b.lose("CreateRecurrentPayment");
  b.tell("p1", PENDING, { operation: RECURRENT });
  assert.deepEqual(b.settle(), [`${first.id} pending`, `${second.id} unknown`]);
  b.tell("p1", SUCCESS, { operation: RECURRENT });
  assert.deepEqual(b.settle(), [`${second.id} unknown`]);
});

for (const order of ["before", "after"] as const) {
  test(`confirmations of one payment are distinguished by their operation_id (the first one's callback came ${order} the call)`, async () => {
    const b = books();
    const first = { state: "closed", mark: "confirm o1", key: "keep" } as const;
    b.end(b.begin("ConfirmPayment"), first);
    const tellFirst = () => b.tell("p1", FAILURE, { operation: CONFIRM, operationId: "o1" });
    if (order === "before") await tellFirst();
    const lost = b.lose("ConfirmPayment");
    if (order === "after") await tellFirst();
    assert.equal(await b.evidenceOf(lost), undefined, "it is about the first one");
    b.tell("p1", SUCCESS, { operation: CONFIRM, operationId: "o2" });
    assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "confirm o2" });
  });
}

test("a call whose answer named no payment continues as the payment that arrives", async () => {
  const b = books();
  const vague = b.begin();
  b.end(vague, { state: "pending", subjectId: "", key: "keep" });
  assert.equal(await b.evidenceOf(vague), undefined);
  b.tell("p1", PENDING);
  assert.deepEqual(b.settle(), [`${vague.id} pending`]);
  b.tell("p1", FAILURE);
  assert.deepEqual(b.settle(), []);
});

test("a failure that may be that of either of two lost calls ends neither, until one is answered", async () => {
  const b = books();
  const first = b.lose();
  const second = b.lose();
  b.tell("p2", FAILURE);
  assert.deepEqual(b.settle(), [`${first.id} unknown`, `${second.id} unknown`]);
  assert.equal(await b.state(), PaymentState.UNKNOWN);
  b.end(second, { state: "closed", mark: "p2", key: "keep" });
  assert.deepEqual(b.settle(), [`${first.id} unknown`]);
  b.tell("p1", FAILURE);
  assert.deepEqual(b.settle(), []);
});

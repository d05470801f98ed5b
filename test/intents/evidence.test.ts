import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { paymentEntry } from "../../src/events/entry.ts";
import { noFacts } from "../../src/events/facts.ts";
import type { EventLog } from "../../src/events/log.ts";
import { paymentState } from "../../src/events/payment-state.ts";
import { EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentOperation,
  PaymentSchema,
  PaymentState,
  PaymentStatus,
} from "../../src/gen/payments/v1/payment_pb.ts";
import {
  type CallStores,
  openCallsOf,
  outcomeFlags,
  settleAsPaid,
  settleByEvents,
} from "../../src/intents/settle.ts";
import type { Ending, Intent, MoneyMethod } from "../../src/intents/store.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { overridden } from "../overridden.ts";

const account = "default";
const externalId = "order";
const { PAYMENT } = EventKind;
const { PENDING, SUCCESS, FAILURE } = PaymentStatus;
const { RECURRENT, CONFIRM, CANCEL, REFUND } = PaymentOperation;

interface Told {
  readonly operation?: PaymentOperation;
  readonly operationId?: string;
  readonly amount?: string;
}

/** A log and an intent store on one clock, which advances by a millisecond with each action. */
function books() {
  let nowMs = 1_000_000;
  const now = () => nowMs;
  const options = { firstLookMs: 0, giveUpMs: 3_600_000, now };
  const intents = createMemoryLedger({ retentionMs: 3_600_000, ...options });
  const log = intents;
  return {
    async begin(method: MoneyMethod = "CreatePayment"): Promise<Intent> {
      nowMs++;
      const about = { id: randomUUID(), kind: PAYMENT, externalId, leaseMs: 60_000 };
      let begun = await intents.begin(account, { ...about, method });
      if (begun.kind === "inFlight") {
        // Two calls of a method are open only if a replica began one without its store.
        begun = await createMemoryLedger({ retentionMs: 3_600_000, ...options }).begin(account, {
          ...about,
          method,
        });
        if (begun.kind === "started")
          await intents.adopt(account, begun.intent, nowMs - begun.intent.startedAtMs);
      }
      assert.ok(begun.kind === "started", begun.kind);
      return begun.intent;
    },
    async end(intent: Intent, ending: Ending) {
      nowMs++;
      await intents.end(account, intent, ending);
    },
    async lose(method?: MoneyMethod): Promise<Intent> {
      const intent = await this.begin(method);
      await this.end(intent, { state: "unknown" });
      return intent;
    },
    /** An operator has to look: the call holds no lock any more. */
    async giveUp(intent: Intent) {
      nowMs++;
      await intents.giveUp(account, intent);
    },
    /** Stores a callback. */
    async tell(
      paymentId: string,
      status: PaymentStatus,
      { operation = PaymentOperation.PAYMENT, operationId = "", ...rest }: Told = {},
    ) {
      nowMs++;
      const details = { paymentId, status, operationId, currency: "UAH", ...rest };
      const payment = create(PaymentSchema, { externalId, operation, details });
      const entry = paymentEntry(payment, { source: EventSource.CALLBACK });
      assert.ok(entry);
      await log.append(account, entry);
    },
    /** Handles the service's answer that the external_id is already paid. */
    async saidPaid(intent: Intent, said: Parameters<typeof settleAsPaid>[3]) {
      nowMs++;
      await settleAsPaid({ log, intents }, account, intent, said);
    },
    async flags() {
      return outcomeFlags(
        (await openCallsOf({ log, intents }, account, PAYMENT, externalId)).openCalls,
      );
    },
    /** @param meanwhile what happens between the first read of a store and the next one */
    async state(meanwhile: () => Promise<void> = async () => {}) {
      let reads = 0;
      const thenMeanwhile = async <T>(read: Promise<T>): Promise<T> => {
        const result = await read;
        if (reads++ === 0) await meanwhile();
        return result;
      };
      const stores = {
        log: overridden<EventLog>(log, { snapshot: (...of) => thenMeanwhile(log.snapshot(...of)) }),
        intents: Object.assign(Object.create(intents) as typeof intents, {
          open: (...of: Parameters<typeof intents.open>) => thenMeanwhile(intents.open(...of)),
        }),
      } satisfies CallStores;
      const known = await openCallsOf(stores, account, PAYMENT, externalId);
      const { outcomeUnknown } = outcomeFlags(known.openCalls);
      return paymentState(known.snapshot?.facts ?? noFacts, outcomeUnknown);
    },
    /** What the events show about a call. */
    async evidenceOf({ id }: Intent) {
      const { openCalls } = await openCallsOf({ log, intents }, account, PAYMENT, externalId);
      return openCalls.find(({ intent }) => intent.id === id)?.evidence;
    },
    /** Settles the calls whose outcome the events show; returns those that are still open. */
    async settle(): Promise<string[]> {
      const open = async () =>
        (await openCallsOf({ log, intents }, account, PAYMENT, externalId)).openCalls;
      for (const standing of await open()) {
        await settleByEvents({ log, intents }, account, standing);
      }
      return (await open()).map(({ intent }) => `${intent.id} ${intent.state}`);
    },
  };
}

const refused = (mark: string): Ending => ({ state: "closed", mark, key: "keep" });

test("a payment that began after the call is evidence for it", async () => {
  const b = books();
  const lost = await b.lose();
  assert.equal(await b.evidenceOf(lost), undefined);
  await b.tell("p1", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p1", mark: "p1" });
  await b.tell("p1", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p1" });
});

test("a success settles all calls; if it is taken back whole, calls that began after it are open", async () => {
  for (const [takenBack, amount, isStanding] of [
    [CANCEL, undefined, false],
    [REFUND, "10.00", false],
    [REFUND, "9.99", true],
  ] as const) {
    const b = books();
    const first = await b.lose();
    await b.tell("p1", SUCCESS, { amount: "10.00" });
    const second = await b.lose();
    assert.equal((await b.evidenceOf(second))?.kind, "settled");
    await b.tell("p1", SUCCESS, {
      operation: takenBack,
      operationId: "op",
      ...(amount && { amount }),
    });
    assert.deepEqual(await b.evidenceOf(first), {
      kind: "settled",
      ...(!isStanding && { mark: "p1" }),
    });
    const left = isStanding ? { kind: "settled" } : undefined;
    assert.deepEqual(
      await b.evidenceOf(second),
      left,
      "the service may have taken another payment",
    );
    assert.deepEqual(await b.settle(), isStanding ? [] : [`${second.id} unknown`]);
    if (isStanding) continue;
    await b.tell("p2", SUCCESS, { amount: "10.00" });
    assert.deepEqual(await b.settle(), []);
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
    await b.tell("p1", SUCCESS);
    await b.tell("p1", SUCCESS, { operation: CANCEL });
    const lost = await b.lose();
    await b.saidPaid(lost, { code, ...(paymentId && { paymentId }) });
    assert.deepEqual(await b.settle(), settles ? [] : [`${lost.id} unknown`]);
    assert.equal(await b.state(), settles ? PaymentState.PAID : PaymentState.UNKNOWN);
  }
});

test("a late failure of an earlier, answered attempt is no evidence for this call", async () => {
  const b = books();
  await b.end(await b.begin(), refused("p1"));
  const lost = await b.lose();
  await b.tell("p1", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined);
  await b.tell("p2", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
});

test("a failure is no evidence if it may be that of a refusal without a payment_id", async () => {
  const b = books();
  await b.end(await b.begin(), refused(""));
  const lost = await b.lose();
  await b.tell("p1", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined, "it may be the refused one's");
  await b.tell("p2", FAILURE);
  assert.equal((await b.evidenceOf(lost))?.kind, "settled", "both cannot be");
});

test("after a refusal without a payment_id, a pending payment is evidence for the open call", async () => {
  const b = books();
  await b.end(await b.begin(), refused(""));
  const lost = await b.lose();
  await b.tell("p1", FAILURE);
  await b.tell("p2", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p2", mark: "p2" });
});

test("a refusal without a payment_id accounts for one failure, also if that came before the call", async () => {
  const b = books();
  await b.end(await b.begin(), refused(""));
  await b.tell("p1", FAILURE);
  const lost = await b.lose();
  await b.tell("p2", FAILURE);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
});

test("the failure of a payment that began before the call is no evidence for the call", async () => {
  const b = books();
  await b.tell("p0", PENDING);
  const lost = await b.lose();
  await b.tell("p0", FAILURE);
  assert.equal(await b.evidenceOf(lost), undefined);
});

test("the success of a payment settles every CreatePayment, whichever call made it", async () => {
  const b = books();
  await b.tell("p0", PENDING);
  const lost = await b.lose();
  await b.tell("p0", SUCCESS);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "settled" });
});

for (const order of ["earlier", "later"] as const) {
  test(`a payment of a call that began ${order}, running or answered, is no evidence for this call`, async () => {
    const b = books();
    const calls: Intent[] = [];
    if (order === "later") calls.push(await b.lose("CreateRecurrentPayment"));
    const other = await b.begin("CreateRecurrentPayment");
    if (order === "earlier") calls.push(await b.lose("CreateRecurrentPayment"));
    const [lost] = calls;
    assert.ok(lost);
    await b.tell("p1", SUCCESS, { operation: RECURRENT });
    assert.equal(await b.evidenceOf(lost), undefined, "the one that runs will tell by its answer");
    await b.end(other, { state: "closed", mark: "p1", key: "keep" });
    assert.equal(await b.evidenceOf(lost), undefined, "it has told");
    await b.tell("p2", SUCCESS, { operation: RECURRENT });
    assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "p2" });
  });
}

test("a running call ends with the success or failure that it made", async () => {
  for (const status of [SUCCESS, FAILURE]) {
    const b = books();
    const running = await b.begin();
    await b.tell("p1", PENDING);
    assert.deepEqual(await b.settle(), [`${running.id} running`], "its answer is still to come");
    await b.tell("p1", status);
    assert.deepEqual(await b.settle(), []);
    await b.begin();
  }
});

test("a running call does not end with what another call may have made", async () => {
  const isLeft = async (b: ReturnType<typeof books>, running: Intent) =>
    (await b.settle()).includes(`${running.id} running`);

  const vague = books();
  await vague.end(await vague.begin(), { state: "pending", subjectId: "", key: "keep" });
  const givenUp = books();
  await givenUp.giveUp(await givenUp.lose());
  const adopted = books();
  await adopted.begin();
  for (const b of [vague, givenUp, adopted]) {
    const running = await b.begin();
    await b.tell("p1", FAILURE);
    assert.equal(await isLeft(b, running), true, "it may be the other's");
    await b.tell("p2", FAILURE);
    assert.equal(await isLeft(b, running), false, "one of two is its own");
  }

  const confirmed = books();
  const answer = { state: "closed", mark: "confirm p1", key: "keep" } as const;
  await confirmed.end(await confirmed.begin("ConfirmPayment"), answer);
  const second = await confirmed.begin("ConfirmPayment");
  await confirmed.tell("p1", FAILURE, { operation: CONFIRM, operationId: "o1" });
  assert.equal(await isLeft(confirmed, second), true, "the first one's answer named no operation");
});

test("a call takes a payment that goes on before one that failed", async () => {
  const b = books();
  const lost = await b.lose();
  await b.tell("p1", FAILURE);
  await b.tell("p2", PENDING);
  assert.deepEqual(await b.evidenceOf(lost), { kind: "arrived", subjectId: "p2", mark: "p2" });
});

test("a call that was given up claims no payment before the next call", async () => {
  const b = books();
  const first = await b.lose();
  await b.giveUp(first);
  const second = await b.lose();
  await b.tell("p1", PENDING);
  assert.deepEqual(await b.evidenceOf(second), { kind: "arrived", subjectId: "p1", mark: "p1" });
});

test("no operator has to look once the events show what became of a call", async () => {
  const b = books();
  const lost = await b.lose();
  assert.deepEqual(await b.flags(), { outcomeUnknown: true, needsOperator: false });
  await b.giveUp(lost);
  assert.deepEqual(await b.flags(), { outcomeUnknown: true, needsOperator: true });
  await b.tell("p1", SUCCESS);
  assert.deepEqual(await b.flags(), { outcomeUnknown: false, needsOperator: false });
});

test("a call that is settled while its state is read shows in that state", async () => {
  const b = books();
  await b.lose();
  const settled = async () => {
    await b.tell("p1", SUCCESS);
    assert.deepEqual(await b.settle(), []);
  };
  assert.equal(await b.state(settled), PaymentState.PAID);
});

test("one payment settles only one of two lost calls, and the other stays unknown", async () => {
  const b = books();
  await b.lose("CreateRecurrentPayment");
  const second = await b.lose("CreateRecurrentPayment");
  await b.tell("p1", SUCCESS, { operation: RECURRENT });
  assert.deepEqual(await b.settle(), [`${second.id} unknown`]);
  assert.deepEqual(await b.settle(), [`${second.id} unknown`], "not at the second look either");
  await b.tell("p2", FAILURE, { operation: RECURRENT });
  assert.deepEqual(await b.settle(), []);
});

test("a pending payment makes only the first of two lost calls pending", async () => {
  const b = books();
  const first = await b.lose("CreateRecurrentPayment");
  const second = await b.lose("CreateRecurrentPayment");
  await b.tell("p1", PENDING, { operation: RECURRENT });
  assert.deepEqual(await b.settle(), [`${first.id} pending`, `${second.id} unknown`]);
  await b.tell("p1", SUCCESS, { operation: RECURRENT });
  assert.deepEqual(await b.settle(), [`${second.id} unknown`]);
});

for (const order of ["before", "after"] as const) {
  test(`confirmations of one payment are distinguished by their operation_id (the first one's callback came ${order} the call)`, async () => {
    const b = books();
    const first = { state: "closed", mark: "confirm o1", key: "keep" } as const;
    await b.end(await b.begin("ConfirmPayment"), first);
    const tellFirst = () => b.tell("p1", FAILURE, { operation: CONFIRM, operationId: "o1" });
    if (order === "before") await tellFirst();
    const lost = await b.lose("ConfirmPayment");
    if (order === "after") await tellFirst();
    assert.equal(await b.evidenceOf(lost), undefined, "it is about the first one");
    await b.tell("p1", SUCCESS, { operation: CONFIRM, operationId: "o2" });
    assert.deepEqual(await b.evidenceOf(lost), { kind: "settled", mark: "confirm o2" });
  });
}

test("a call whose answer named no payment continues as the payment that arrives", async () => {
  const b = books();
  const vague = await b.begin();
  await b.end(vague, { state: "pending", subjectId: "", key: "keep" });
  assert.equal(await b.evidenceOf(vague), undefined);
  await b.tell("p1", PENDING);
  assert.deepEqual(await b.settle(), [`${vague.id} pending`]);
  await b.tell("p1", FAILURE);
  assert.deepEqual(await b.settle(), []);
});

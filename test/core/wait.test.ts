import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Context } from "../../src/core/context.ts";
import type { Call } from "../../src/core/core.ts";
import { moneyAnswer } from "../../src/core/money-answer.ts";
import type { Made } from "../../src/core/money-calls.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { wait } from "../../src/core/wait.ts";
import { GatewayError } from "../../src/errors.ts";
import { EventKind, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema, PaymentState } from "../../src/gen/payments/v1/payment_pb.ts";
import { CreatePaymentRequestSchema } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutState } from "../../src/gen/payments/v1/payout_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import { Drain } from "../../src/live/drain.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { payment } from "../ledger/entries.ts";
import { callBegun } from "../ledger/new-call.ts";
import { overridden } from "../overridden.ts";
import { account, callOf } from "./rig.ts";

const about = { account, kind: EventKind.PAYMENT, externalId: "order-1" };
const { externalId } = about;
const theAnswer = { name: "the answer itself" };
const nothing = { state: PaymentState.UNSPECIFIED, payoutState: PayoutState.UNSPECIFIED };
const lost = new GatewayError("UNKNOWN", "lost", { outcomeUnknown: { externalId } });
/** The store's answer to the first try was lost. */
const duplicate = { outcome: "duplicate", conflict: false } as const;

interface Of {
  readonly until: WaitUntil;
  readonly ledger: Partial<Ledger>;
}

/** An answer whose store reads with `known`, for a caller who waits for `until` or does not. */
function answered(
  made: Made<typeof theAnswer> | GatewayError,
  known: Ledger["known"],
  { until = WaitUntil.UNSPECIFIED, ledger, ...given }: Partial<Call & Of> = {},
) {
  const run = async () => {
    if (made instanceof GatewayError) throw made;
    return made;
  };
  const context = {
    ...{ ledger: { ...ledger, known }, waits: new Drain(), waitLimits: createStreamLimits(10) },
    moneyCalls: { run },
  } as unknown as Context;
  const request = create(CreatePaymentRequestSchema, { externalId, waitUntil: until });
  const answer = moneyAnswer(context, {
    ...{ call: callOf([], given), method: "CreatePayment", externalId, request },
    ...{ answerSchema: PaymentSchema, send: () => assert.fail(), entry: () => assert.fail() },
  });
  answer.catch(() => {});
  return answer;
}

/** A ledger, and callers who wait until its payment is settled. */
function rig(t: TestContext, { maxWaits = 10 } = {}) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const log = createMemoryLedger({ retentionMs: 3_600_000, firstLookMs: 60_000, giveUpMs: 60_000 });
  const context = {
    ...{ ledger: log as Ledger, waits: new Drain() },
    waitLimits: createStreamLimits(maxWaits),
  };
  return {
    ...{ log, context },
    append: (told: Parameters<typeof payment>[0]) => log.append(account, payment(told)),
    /** Begins a call, which no earlier payment is evidence for. */
    async begin() {
      t.mock.timers.tick(1);
      return await callBegun(log, account, { id: "c", externalId });
    },
    /** A call is lost, and proves not to have been done. */
    async notDone() {
      const intent = await this.begin();
      await log.end(account, intent, { state: "unknown" });
      await log.end(account, intent, { state: "closed", key: "free" });
    },
    /** Waits for the payment, as a call does whose caller asked for it. */
    waits(call: Partial<Call> = {}, of: Partial<typeof context> = {}) {
      const waiting = wait({ ...context, ...of }, callOf([], call), about, WaitUntil.SETTLED);
      let isOver = false;
      waiting.then(
        () => {
          isOver = true;
        },
        () => {},
      );
      return { waiting, isOver: () => isOver };
    },
    /** The answer of such a call. */
    waited: (made: Parameters<typeof answered>[0], call: Partial<Call> = {}) =>
      answered(made, log.known.bind(log), {
        ledger: { read: log.read.bind(log) },
        until: WaitUntil.SETTLED,
        ...call,
      }),
    /** Lets resolved promises and scheduled callbacks run, and time pass behind them. */
    async passes(ms = 0) {
      for (let i = 0; i < 5; i++) await new Promise(setImmediate);
      t.mock.timers.tick(ms);
    },
  };
}

/** The same with a payment that stays pending. */
async function pendingRig(t: TestContext, options?: { maxWaits: number }) {
  const made = rig(t, options);
  await made.append({ status: "pending" });
  return made;
}

for (const [name, call, waitMs] of [
  ["30 s without a deadline", {}, 30_000],
  ["30 s where the deadline is the edge's own", { forMs: 60_000, deadlineIsOurs: true }, 30_000],
  ["nine tenths of what is left", { forMs: 100_000 }, 90_000],
  ["100 ms less than what is left", { forMs: 500 }, 400],
] as const) {
  test(`a wait lasts ${name}`, async (t) => {
    const { waits, passes } = await pendingRig(t);
    const { forMs, ...rest } = { forMs: undefined, ...call };
    const { waiting, isOver } = waits({
      ...rest,
      ...(forMs !== undefined && { deadlineMs: Date.now() + forMs }),
    });
    await passes();
    t.mock.timers.tick(waitMs - 1);
    await passes();
    assert.equal(isOver(), false);
    t.mock.timers.tick(1);
    const known = await waiting;
    assert.equal(known?.current?.event.externalId, about.externalId);
    assert.notEqual(known?.cursor, "");
  });
}

test("a caller without time to wait is answered at once", async (t) => {
  const { waits } = await pendingRig(t);
  const known = await waits({ deadlineMs: Date.now() + 90 }).waiting;
  assert.notEqual(known?.cursor, "");
});

test("a caller with too many waits is answered at once, and keeps its admission slot", async (t) => {
  const { waits, append } = await pendingRig(t, { maxWaits: 1 });
  const leave = new AbortController();
  const first = waits({ signal: leave.signal });
  let gaveUpSlot = false;
  const onWait = () => {
    gaveUpSlot = true;
  };
  assert.notEqual((await waits({ onWait }).waiting)?.cursor, "");
  assert.equal(gaveUpSlot, false);
  assert.equal(first.isOver(), false);
  leave.abort();
  await assert.rejects(first.waiting, { code: "CANCELLED" });
  const next = waits({ onWait });
  assert.equal(gaveUpSlot, true, "the place was given back");
  await append({ status: "success" });
  await next.waiting;
});

test("a wait ends soon after an open call has ended without an event", async (t) => {
  const { waits, append, begin, passes, log } = await pendingRig(t);
  await append({ status: "failure" });
  const intent = await begin();
  const { waiting, isOver } = waits();
  await passes();
  t.mock.timers.tick(500);
  await passes();
  assert.equal(isOver(), false, "the control");
  await log.end(account, intent, { state: "closed", key: "free" });
  t.mock.timers.tick(500);
  await passes();
  assert.equal(isOver(), true);
  assert.equal((await waiting)?.callIsOpen, false);
});

test("a wait goes on while a confirmation of what is held is pending", async (t) => {
  const { waits, append, passes } = await pendingRig(t);
  await append({ paymentId: "p-0", status: "success", held: true });
  await append({ paymentId: "p-0", operation: "confirm", status: "pending" });
  const { waiting, isOver } = waits();
  await passes();
  assert.equal(isOver(), false);
  await append({ paymentId: "p-0", operation: "confirm", status: "success" });
  assert.equal((await waiting)?.callIsOpen, false);
});

test("a shutdown ends all waits, and later ones end at once", async (t) => {
  const { waits, passes, context } = await pendingRig(t);
  const before = waits();
  await passes();
  context.waits.end(new Error("shutting down"), 0);
  assert.notEqual((await before.waiting)?.cursor, "");
  assert.notEqual((await waits().waiting)?.cursor, "");
});

test("a wait returns undefined while the store is away", async (t) => {
  const { waits, log } = await pendingRig(t);
  const away = () => Promise.reject(new GatewayError("UNAVAILABLE", "away"));
  const broken = overridden(log, { read: away, known: away });
  assert.equal(await waits({}, { ledger: broken }).waiting, undefined);
});

test("a caller that goes away ends only its own wait", async (t) => {
  const { waits, passes, append } = await pendingRig(t);
  const leave = new AbortController();
  const leaving = waits({ signal: leave.signal });
  const staying = waits();
  await passes();
  leave.abort();
  await assert.rejects(leaving.waiting, { code: "CANCELLED" });
  await passes();
  assert.equal(staying.isOver(), false);
  await append({ status: "success" });
  assert.equal((await staying.waiting)?.current?.event.final, true);
});

test("a wait ends when a call proves not to have been done", async (t) => {
  const rig = await pendingRig(t);
  const { waiting, isOver } = rig.waits();
  await rig.passes();
  assert.equal(isOver(), false, "the control");
  await rig.notDone();
  assert.equal((await waiting)?.isGivenUp, true);
});

test("a wait ends in time while the log does not answer", async (t) => {
  const { waits, passes, log } = await pendingRig(t);
  const silent = overridden(log, { read: () => new Promise(() => {}) });
  const { waiting, isOver } = waits({ deadlineMs: Date.now() + 4_000 }, { ledger: silent });
  await passes();
  t.mock.timers.tick(3_600);
  await passes();
  assert.equal(isOver(), true);
  assert.equal(await waiting, undefined);
});

test("the state after an answer comes from it alone while the log cannot be read", async () => {
  const entry = payment({ status: "success" });
  for (const error of [new GatewayError("UNAVAILABLE", "away"), new Error("a mistake of ours")]) {
    const away = () => Promise.reject(error);
    const plain = await answered({ answer: theAnswer }, away);
    assert.deepEqual(plain, { answer: theAnswer, ...nothing, cursor: "" });
    for (const appended of [undefined, duplicate]) {
      const { state, cursor } = await answered({ answer: theAnswer, entry, appended }, away);
      assert.deepEqual([state, cursor], [PaymentState.PAID, ""]);
    }
  }
});

test("a lost call is not answered with the failure of an earlier attempt", async (t) => {
  const { log, begin, append, waited, passes } = rig(t);
  await append({ paymentId: "p-0", status: "failure" });
  const intent = await begin();
  await log.end(account, intent, { state: "unknown" });
  const early = waited(lost);
  await passes(30_000);
  await assert.rejects(early, lost, "nothing came");
  const late = waited(lost);
  await passes();
  await log.end(account, intent, { state: "closed", key: "free" });
  await assert.rejects(late, lost, "it was not done");
});

test("an answer that is not in the log is not waited for", async (t) => {
  const { append, waited, passes } = rig(t);
  await append({ status: "pending" });
  const entry = payment({ status: "pending" });
  for (const [appended, waits] of [
    [undefined, 0],
    [duplicate, 1],
  ] as const) {
    let waiting = 0;
    const answer = waited({ answer: theAnswer, entry, appended }, { onWait: () => waiting++ });
    await passes(30_000);
    await answer;
    assert.equal(waiting, waits);
  }
});

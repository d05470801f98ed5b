import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Call } from "../../src/core/core.ts";
import { createStreamLimits } from "../../src/core/stream-limits.ts";
import { wait } from "../../src/core/wait.ts";
import { GatewayError } from "../../src/errors.ts";
import { CallOutcome, EventKind, WaitUntil } from "../../src/gen/payments/v1/event_pb.ts";
import { callOutcomeEntry } from "../../src/ledger/call-outcome.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { Drain } from "../../src/live/drain.ts";
import { payment } from "../ledger/entries.ts";
import { overridden } from "../overridden.ts";

const about = { account: "default", kind: EventKind.PAYMENT, externalId: "order-1" };

/** A payment that stays pending, and a caller who waits for its end. */
async function rig(t: TestContext, { maxWaits = 10 } = {}) {
  t.mock.timers.enable({ apis: ["setTimeout", "Date"], now: 1_000_000 });
  const log = createMemoryLedger({ retentionMs: 3_600_000, firstLookMs: 60_000, giveUpMs: 60_000 });
  const intents = log;
  await log.append(about.account, payment({ status: "pending" }));
  const context = {
    ...{ log, intents, waits: new Drain() },
    waitLimits: createStreamLimits(maxWaits),
  };
  return {
    ...{ log, intents, context },
    begin(call: Partial<Call> = {}, of: Partial<typeof context> = {}) {
      const caller = { name: "test", account: about.account, scopes: new Set<never>() };
      const signal = new AbortController().signal;
      const waiting = wait(
        { ...context, ...of },
        { caller, signal, requestId: "r", ...call },
        about,
        WaitUntil.SETTLED,
      );
      let isOver = false;
      waiting.then(
        () => {
          isOver = true;
        },
        () => {},
      );
      return { waiting, isOver: () => isOver };
    },
  };
}

/** Lets resolved promises and scheduled callbacks run. */
async function turns() {
  for (let i = 0; i < 5; i++) await new Promise(setImmediate);
}

for (const [name, call, waitMs] of [
  ["30 s without a deadline", {}, 30_000],
  ["30 s where the deadline is the edge's own", { forMs: 60_000, deadlineIsOurs: true }, 30_000],
  ["nine tenths of what is left", { forMs: 100_000 }, 90_000],
  ["100 ms less than what is left", { forMs: 500 }, 400],
] as const) {
  test(`a wait lasts ${name}`, async (t) => {
    const { begin } = await rig(t);
    const { forMs, ...rest } = { forMs: undefined, ...call };
    const { waiting, isOver } = begin({
      ...rest,
      ...(forMs !== undefined && { deadlineMs: Date.now() + forMs }),
    });
    await turns();
    t.mock.timers.tick(waitMs - 1);
    await turns();
    assert.equal(isOver(), false);
    t.mock.timers.tick(1);
    const known = await waiting;
    assert.equal(known?.current?.event.externalId, about.externalId);
    assert.notEqual(known?.cursor, "");
  });
}

test("a caller without time to wait is answered at once", async (t) => {
  const { begin } = await rig(t);
  const known = await begin({ deadlineMs: Date.now() + 90 }).waiting;
  assert.notEqual(known?.cursor, "");
});

test("a caller without time to wait is answered by the deadline even if the store is silent", async (t) => {
  const { begin, intents } = await rig(t);
  const silent = overridden(intents, { known: () => new Promise<never>(() => {}) });
  const deadline = new AbortController();
  const call = { deadlineMs: Date.now() + 90, signal: deadline.signal };
  const { waiting } = begin(call, { intents: silent });
  deadline.abort(new DOMException("the deadline passed", "TimeoutError"));
  await assert.rejects(waiting, { code: "DEADLINE_EXCEEDED" });
});

test("a caller with too many waits is answered at once, and keeps its admission slot", async (t) => {
  const { begin, log } = await rig(t, { maxWaits: 1 });
  const leave = new AbortController();
  const first = begin({ signal: leave.signal });
  let gaveUpSlot = false;
  const onWait = () => {
    gaveUpSlot = true;
  };
  assert.notEqual((await begin({ onWait }).waiting)?.cursor, "");
  assert.equal(gaveUpSlot, false);
  assert.equal(first.isOver(), false);
  leave.abort();
  await assert.rejects(first.waiting, { code: "CANCELLED" });
  const next = begin({ onWait });
  assert.equal(gaveUpSlot, true, "the place was given back");
  await log.append(about.account, payment({ status: "success" }));
  await next.waiting;
});

test("a wait ends soon after an open call has ended without an event", async (t) => {
  const { begin, log, intents } = await rig(t);
  await log.append(about.account, payment({ status: "failure" }));
  // A payment that began before the call is no evidence for it.
  t.mock.timers.tick(1);
  const { account, kind, externalId } = about;
  const call = { id: "later", method: "CreatePayment", kind, externalId, leaseMs: 60_000 } as const;
  const begun = await intents.begin(account, call);
  assert.ok(begun.kind === "started");
  const { waiting, isOver } = begin();
  await turns();
  t.mock.timers.tick(500);
  await turns();
  assert.equal(isOver(), false, "the control");
  await intents.end(account, begun.intent, { state: "closed", key: "free" });
  t.mock.timers.tick(500);
  await turns();
  assert.equal(isOver(), true);
  assert.equal((await waiting)?.callIsOpen, false);
});

test("a shutdown ends all waits, and later ones end at once", async (t) => {
  const { begin, context } = await rig(t);
  const before = begin();
  await turns();
  context.waits.end(new Error("shutting down"), 0);
  assert.notEqual((await before.waiting)?.cursor, "");
  assert.notEqual((await begin().waiting)?.cursor, "");
});

test("a wait returns undefined while the store is away", async (t) => {
  const { begin, log } = await rig(t);
  const away = () => Promise.reject(new GatewayError("UNAVAILABLE", "away"));
  const broken = overridden(log, { read: away, known: away });
  assert.equal(await begin({}, { log: broken }).waiting, undefined);
});

test("a caller that goes away ends only its own wait", async (t) => {
  const { begin, log } = await rig(t);
  const leave = new AbortController();
  const leaving = begin({ signal: leave.signal });
  const staying = begin();
  await turns();
  leave.abort();
  await assert.rejects(leaving.waiting, { code: "CANCELLED" });
  await turns();
  assert.equal(staying.isOver(), false);
  await log.append(about.account, payment({ status: "success" }));
  assert.equal((await staying.waiting)?.current?.event.final, true);
});

test("a wait ends when a call proves not to have been done", async (t) => {
  const { begin, log } = await rig(t);
  const { waiting, isOver } = begin();
  await turns();
  assert.equal(isOver(), false, "the control");
  await log.append(about.account, callOutcomeEntry({ id: "c", ...about }, CallOutcome.NOT_DONE));
  assert.equal((await waiting)?.isGivenUp, true);
});

test("a wait ends in time while the log does not answer", async (t) => {
  const { begin, log } = await rig(t);
  const silent = overridden(log, { read: () => new Promise(() => {}) });
  const { waiting, isOver } = begin({ deadlineMs: Date.now() + 4_000 }, { log: silent });
  await turns();
  t.mock.timers.tick(3_600);
  await turns();
  assert.equal(isOver(), true);
  assert.equal(await waiting, undefined);
});

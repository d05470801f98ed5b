import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { getEventListeners } from "node:events";
import { describe, it, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Call } from "../../src/core/core.ts";
import { follow, watch } from "../../src/core/watch.ts";
import { GatewayError } from "../../src/errors.ts";
import {
  CallOutcome,
  type Event,
  EventKind,
  EventSource,
} from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { callOutcomeEntry } from "../../src/ledger/call-outcome.ts";
import { paymentEntry } from "../../src/ledger/entry.ts";
import type { IntentStore } from "../../src/ledger/intents.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry, EventLog } from "../../src/ledger/log.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { Drain } from "../../src/live/drain.ts";
import { decode } from "../../src/wire/wire.ts";
import { stateOn, step } from "../ledger/entries.ts";
import { overridden } from "../overridden.ts";

const account = "default";
const externalId = "order";
const newLog = () => createMemoryLedger({ retentionMs: 60_000 });

/** The entry of a callback; with `held`, that of an answer that says whether it is held. */
function entry(
  status: string,
  paymentId = "p1",
  operation = "payment",
  { amount = "10.00", held }: { amount?: string; held?: boolean } = {},
) {
  const text = JSON.stringify({
    external_id: externalId,
    operation,
    details: { payment_id: paymentId, status, amount, currency: "UAH" },
  });
  const made = paymentEntry(decode(PaymentSchema, text), {
    ...(held === undefined
      ? { source: EventSource.CALLBACK, raw: Buffer.from(text) }
      : { source: EventSource.RESPONSE, held }),
  });
  assert.ok(made);
  return made;
}

const lostCall = { id: "lost", kind: EventKind.PAYMENT, externalId };

/** Begins a call; `end` closes it as refused, without an event. */
async function beginCall(intents: IntentStore) {
  const begun = await intents.begin(account, {
    ...{ id: randomUUID(), method: "CreatePayment", kind: EventKind.PAYMENT, externalId },
    leaseMs: 60_000,
  });
  assert.ok(begun.kind === "started");
  const { intent } = begun;
  return { end: () => intents.end(account, intent, { state: "closed", key: "free" }) };
}

function callOf(signal: AbortSignal, { expiresAtMs, resumed = false, push }: StartOptions): Call {
  return {
    ...{ resumed, push },
    caller: {
      name: "test",
      account,
      scopes: new Set(),
      ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
    },
    signal,
    requestId: "r",
  };
}

interface StartOptions extends Pick<Call, "push"> {
  after?: string;
  untilFinal?: boolean;
  expiresAtMs?: number;
  resumed?: boolean;
  intents?: IntentStore;
}

function start(log: EventLog, options: StartOptions = {}) {
  const { intents = log as Ledger } = options;
  const leave = new AbortController();
  const drain = new Drain();
  const events = watch({ log, intents, call: callOf(leave.signal, options), drain }, () => ({
    kind: EventKind.PAYMENT,
    externalId,
    after: options.after,
    untilFinal: options.untilFinal ?? false,
  }));
  return { events: events[Symbol.asyncIterator](), leave, drain };
}

function statusOf(result: IteratorResult<{ resource: unknown }>): unknown {
  if (result.done) return "end";
  const { value } = result.value.resource as { value: { details?: { status: number } } };
  return value.details?.status;
}

const pending = 2;
const success = 3;

test("an event that arrives while a watch starts is delivered even if no state is known yet", async () => {
  const log = newLog();
  const injecting: Ledger = overridden<Ledger>(log, {
    async known(...args) {
      await log.append(account, callOutcomeEntry(lostCall, CallOutcome.NOT_DONE));
      const snapshot = await log.known(...args);
      await log.append(account, entry("success"));
      return snapshot;
    },
  });
  const { events, leave } = start(injecting);
  assert.equal((await events.next()).value.callOutcome, CallOutcome.NOT_DONE);
  assert.equal(statusOf(await events.next()), success);
  leave.abort();
});

test("an event between the snapshot and the live part is delivered exactly once", async () => {
  for (const when of ["before", "after"] as const) {
    const log = newLog();
    await log.append(account, entry("pending"));
    const injecting: Ledger = overridden<Ledger>(log, {
      async known(...args) {
        if (when === "before") await log.append(account, entry("success"));
        const snapshot = await log.known(...args);
        if (when === "after") await log.append(account, entry("success"));
        return snapshot;
      },
    });
    const { events, leave } = start(injecting);
    const seen = [(await events.next()).value];
    if (when === "after") seen.push((await events.next()).value);
    await log.append(account, entry("success", "p1", "refund"));
    seen.push((await events.next()).value);
    const known = await log.history(account, EventKind.PAYMENT, externalId, 10);
    const expected = when === "before" ? known.slice(1) : known;
    assert.deepEqual(
      seen.map(({ cursor }) => cursor),
      expected.map(({ cursor }) => cursor),
    );
    assert.deepEqual(seen.map(step), expected.map(step));
    leave.abort();
    await assert.rejects(events.next(), { code: "CANCELLED" });
  }
});

test("an event between an empty snapshot and the live part is delivered", async () => {
  const log = newLog();
  const injecting: Ledger = overridden<Ledger>(log, {
    async known(...args) {
      const snapshot = await log.known(...args);
      await log.append(account, entry("pending"));
      return snapshot;
    },
  });
  const { events } = start(injecting);
  assert.equal(statusOf(await events.next()), pending);
  await events.return?.();
});

/** The names of a stream's events until it ends by itself; last `open` if none comes for 10 s. */
async function told(events: AsyncIterator<Event>, all: string[] = []): Promise<string[]> {
  for (;;) {
    const next = await Promise.race([events.next(), delay(10_000, undefined, { ref: false })]);
    if (next === undefined) all.push("open");
    if (next === undefined || next.done) return all;
    all.push(nameOf(next.value));
  }
}

function nameOf(event: Event): string {
  if (event.callOutcome === CallOutcome.UNSPECIFIED) return step(event);
  return `call:${Object.entries(CallOutcome).find(([, value]) => value === event.callOutcome)?.[0]}`;
}

test("a follower that looks again and again keeps nothing of its pauses", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { promise, resolve } = Promise.withResolvers<IteratorResult<Event>>();
  let thens = 0;
  const awaited = {
    // biome-ignore lint/suspicious/noThenProperty: counts who waits for the event
    then(...args: Parameters<typeof promise.then>) {
      thens++;
      return promise.then(...args);
    },
  } as Promise<IteratorResult<Event>>;
  const events = { [Symbol.asyncIterator]: () => ({ next: () => awaited }) };
  const followed = follow(events, () => true);
  for (let looks = 0; looks < 50; looks++) {
    const next = followed.next();
    await Promise.resolve();
    t.mock.timers.tick(500);
    assert.deepEqual(await next, { done: false, value: undefined });
  }
  assert.equal(thens, 1);
  const last = followed.next();
  await Promise.resolve();
  resolve({ done: true, value: undefined });
  assert.equal((await last).done, true);
});

describe("until_final", () => {
  const lost = (outcome: CallOutcome) => callOutcomeEntry(lostCall, outcome);
  const hold = () => entry("success", "p1", "payment", { held: true });

  /** Events that are stored in turn, and how many of them an open stream yields before it ends. */
  const live: readonly [why: string, entries: Entry[], toldCount: number][] = [
    ["the success of a payment", [entry("pending"), entry("success")], 2],
    ["a failure", [entry("failure")], 1],
    ["a recurrent payment's end", [entry("success", "p1", "recurrent")], 1],
    ["a hold that was made", [hold()], 1],
    [
      "a confirmation's end, whatever came before",
      [entry("pending"), entry("failure", "p1", "confirm")],
      2,
    ],
    [
      "what pays, not with a refund, a cancellation or a look-up",
      [
        entry("success", "p1", "refund"),
        entry("success", "p1", "cancel"),
        entry("failure", "p1", "lookup"),
        entry("success"),
      ],
      4,
    ],
    [
      "the word that a lost call was not done",
      [lost(CallOutcome.UNKNOWN), lost(CallOutcome.NOT_DONE)],
      2,
    ],
    ["the word that nobody can tell", [lost(CallOutcome.NEEDS_OPERATOR)], 1],
    ["the first end of several", [entry("failure"), entry("success", "p2")], 1],
  ];
  for (const [why, entries, count] of live) {
    it(`ends with ${why}`, async () => {
      const log = newLog();
      const { events } = start(log, { untilFinal: true });
      const all = told(events);
      await delay(1);
      for (const one of entries) await log.append(account, one);
      assert.equal((await all).length, count);
    });
  }

  it("ends with the current state if that is final", async () => {
    const log = newLog();
    await log.append(account, entry("failure"));
    assert.deepEqual(await told(start(log, { untilFinal: true }).events), ["payment:failure"]);
  });

  /** A pending payment, and a call that began after it. */
  async function withCall(): Promise<{
    log: EventLog;
    intents: IntentStore;
    end: () => Promise<unknown>;
  }> {
    const log = newLog();
    const intents = log;
    await log.append(account, entry("pending"));
    // A payment that began before the call is no evidence for it.
    await delay(2);
    return { log, intents, ...(await beginCall(intents)) };
  }

  it("continues while a call is open, and ends when the call does, even without an event", async () => {
    for (const known of ["before", "live"] as const) {
      const { log, intents, end } = await withCall();
      if (known === "before") await log.append(account, entry("failure"));
      const { events } = start(log, { untilFinal: true, intents });
      const before = await events.next();
      assert.equal(nameOf(before.value), known === "live" ? "payment:pending" : "payment:failure");
      if (known === "live") {
        await log.append(account, entry("failure"));
        assert.equal(nameOf((await events.next()).value), "payment:failure");
      }
      const next = events.next();
      assert.equal(await Promise.race([next, delay(1_200, "open")]), "open");
      await end();
      assert.equal((await next).done, true);
    }
  });

  it("yields all events stored before the last call ended, however slowly it is read", async () => {
    const { log, intents, end } = await withCall();
    await log.append(account, entry("failure"));
    const { events } = start(log, { untilFinal: true, intents });
    assert.equal(nameOf((await events.next()).value), "payment:failure");
    const second = events.next();
    await log.append(account, entry("success", "p1", "refund"));
    assert.equal(nameOf((await second).value), "refund:success");
    await log.append(account, entry("success", "p2"));
    await end();
    // By then the stream has checked whether the call is over.
    await delay(1_200);
    assert.deepEqual(await told(events), ["payment:success"]);
  });

  for (const way of ["read", "pushed"] as const) {
    it(`does not end before an attempt that began before the call ended, if events are ${way}`, async () => {
      const { log, intents, end } = await withCall();
      const seen: string[] = [];
      const push = (event: Event) => seen.push(nameOf(event)) > 0;
      const pushing = way === "pushed" ? { push } : {};
      const { events } = start(log, { untilFinal: true, intents, ...pushing });
      assert.equal(nameOf((await events.next()).value), "payment:pending");
      await log.append(account, entry("failure"));
      assert.equal(nameOf((await events.next()).value), "payment:failure");
      const all = told(events, seen);
      await delay(1);
      await log.append(account, entry("pending", "p2"));
      await end();
      await delay(1_200);
      await log.append(account, entry("success", "p2"));
      assert.deepEqual(await all, ["payment:pending", "payment:success"]);
    });
  }

  it("does not end before an attempt that begins while it checks whether the call is over", async () => {
    const { log, intents, end } = await withCall();
    const [checking, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isOver = false;
    const known: IntentStore["known"] = async (...args) => {
      const calls = await intents.known(...args);
      if (!isOver) return calls;
      checking.resolve();
      await begun.promise;
      return calls;
    };
    const { events } = start(log, { untilFinal: true, intents: { known } as IntentStore });
    assert.equal(nameOf((await events.next()).value), "payment:pending");
    await log.append(account, entry("failure"));
    assert.equal(nameOf((await events.next()).value), "payment:failure");
    const next = events.next();
    await delay(1);
    isOver = true;
    await end();
    await checking.promise;
    await log.append(account, entry("pending", "p2"));
    begun.resolve();
    assert.equal(nameOf((await next).value), "payment:pending");
    const all = told(events);
    await delay(1_200);
    await log.append(account, entry("success", "p2"));
    assert.deepEqual(await all, ["payment:success"]);
  });

  /** Entries of a log, the index of the one that a stream resumes after, and what it yields. */
  const resumed: readonly [why: string, entries: Entry[], at: number, told: string[]][] = [
    ["the end, with nothing behind it", [entry("pending"), entry("success")], 1, []],
    ["a failure", [entry("failure")], 0, []],
    ["a lost call that was not done", [entry("pending"), lost(CallOutcome.NOT_DONE)], 1, []],
    [
      "a hold, before its confirmation",
      [hold(), entry("success", "p1", "confirm")],
      0,
      ["confirm:success"],
    ],
    ["a hold alone", [hold()], 0, []],
    [
      "a failure, before another attempt",
      [entry("failure"), entry("success", "p2")],
      0,
      ["payment:success"],
    ],
    [
      "the end, with a refund behind it",
      [entry("success"), entry("success", "p1", "refund"), entry("failure", "p1", "lookup")],
      0,
      ["refund:success", "lookup:failure"],
    ],
    ["a refund behind the end", [entry("success"), entry("success", "p1", "refund")], 1, []],
    [
      "the end, with what became of the call behind it",
      [lost(CallOutcome.UNKNOWN), entry("success"), lost(CallOutcome.SETTLED)],
      1,
      ["call:SETTLED"],
    ],
  ];
  for (const [why, entries, at, expected] of resumed) {
    it(`from the cursor of ${why}, yields the later events and ends`, async () => {
      const log = newLog();
      const cursors: string[] = [];
      for (const one of entries) cursors.push((await log.append(account, one)).event?.cursor ?? "");
      const after = cursors[at] ?? assert.fail();
      assert.deepEqual(await told(start(log, { after, untilFinal: true }).events), expected);
      // The control: without `until_final` the stream does not end.
      const { events, leave } = start(log, { after });
      for (const _ of expected) await events.next();
      const next = events.next();
      assert.equal(await Promise.race([next, delay(20, "open")]), "open");
      leave.abort();
      await assert.rejects(next, { code: "CANCELLED" });
    });
  }

  it("from the cursor of a final event, continues while a call is open", async () => {
    const { log, intents, end } = await withCall();
    const { event } = await log.append(account, entry("failure"));
    const { events } = start(log, { after: event?.cursor ?? "", untilFinal: true, intents });
    const next = events.next();
    assert.equal(await Promise.race([next, delay(1_200, "open")]), "open");
    await end();
    assert.equal((await next).done, true);
  });

  it("ends at once for a client that reconnects by itself after its final event", async () => {
    const log = newLog();
    const { event } = await log.append(account, entry("failure"));
    await log.append(account, entry("success", "p2"));
    const options = { after: event?.cursor ?? "", untilFinal: true };
    assert.deepEqual(await told(start(log, { ...options, resumed: true }).events), []);
    assert.deepEqual(await told(start(log, options).events), ["payment:success"]);
  });

  it("from the start, yields all events up to the first final one", async () => {
    const log = newLog();
    for (const one of [entry("pending"), entry("success"), entry("success", "p1", "refund")]) {
      await log.append(account, one);
    }
    const { events } = start(log, { after: "earliest", untilFinal: true });
    assert.deepEqual(await told(events), ["payment:pending", "payment:success"]);
  });
});

describe("the first event of a watch", () => {
  async function first(entries: readonly Entry[]) {
    const log = newLog();
    for (const one of entries) await log.append(account, one);
    const { events } = start(log);
    const { value } = await events.next();
    await events.return?.();
    return [nameOf(value), stateOn(value)];
  }
  const lost = callOutcomeEntry(lostCall, CallOutcome.UNKNOWN);

  it("carries the current state", async () => {
    const paid = entry("success");
    const back = entry("success", "p1", "refund", { amount: "4.00" });
    assert.deepEqual(await first([paid]), ["payment:success", "PAID"]);
    assert.deepEqual(await first([paid, back]), ["payment:success", "PARTIALLY_REFUNDED"]);
    const cancelled = [paid, entry("success", "p1", "cancel")];
    assert.deepEqual(await first(cancelled), ["payment:success", "CANCELLED"]);
  });

  it("shows the open call rather than a failure while a call's outcome is unknown", async () => {
    assert.deepEqual(await first([entry("failure")]), ["payment:failure", "FAILED"], "the control");
    assert.deepEqual(await first([entry("failure"), lost]), ["call:UNKNOWN", "UNKNOWN"]);
    assert.deepEqual(await first([lost, entry("failure")]), ["call:UNKNOWN", "UNKNOWN"]);
    assert.deepEqual(await first([entry("success"), lost]), ["payment:success", "PAID"]);
  });

  it("carries the state UNKNOWN while a call is open that the log does not show", async () => {
    const log = newLog();
    await log.append(account, entry("failure"));
    await delay(2);
    const intents = log;
    const { end } = await beginCall(intents);
    const stateNow = async () => {
      const { events } = start(log, { intents });
      const { value } = await events.next();
      await events.return?.();
      return [nameOf(value), stateOn(value)];
    };
    assert.deepEqual(await stateNow(), ["payment:failure", "UNKNOWN"]);
    await end();
    assert.deepEqual(await stateNow(), ["payment:failure", "FAILED"]);
  });
});

test("a watch that resumes from a snapshot's cursor yields only events after the snapshot", async () => {
  const log = newLog();
  await log.append(account, entry("success"));
  await log.append(account, entry("failure", "p0"));
  const first = start(log);
  const snapshot = await first.events.next();
  assert.equal(statusOf(snapshot), success, "a late failure of another attempt hides no success");
  await first.events.return?.();

  const resumed = start(log, { after: snapshot.value?.cursor ?? "" });
  await log.append(account, entry("success", "p1", "refund"));
  const next = await resumed.events.next();
  assert.equal(next.value?.resource.value.operation, 3, "the refund comes next, nothing again");
  await resumed.events.return?.();
});

test("a shutdown ends a watch with the cursor to resume from", async () => {
  const log = newLog();
  const injecting: Ledger = overridden<Ledger>(log, {
    async known(...args) {
      // The live part has this event too, but the shutdown comes before it is read from there.
      await log.append(account, entry("pending"));
      return log.known(...args);
    },
  });
  const { events, drain } = start(injecting);
  const { value } = await events.next();
  drain.end(new GatewayError("UNAVAILABLE", "shutting down"), 0);
  await delay(1);
  await assert.rejects(events.next(), (error) => {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.details.resumeCursor, value.cursor);
    return true;
  });
});

test("the cursor to resume from is that of the last event, also if that was pushed", async () => {
  const log = newLog();
  await log.append(account, entry("pending"));
  const pushed: Event[] = [];
  const { events, drain } = start(log, { push: (event) => pushed.push(event) > 0 });
  const { value } = await events.next();
  const next = events.next();
  await delay(1);
  await log.append(account, entry("success"));
  const [last] = pushed;
  assert.ok(last && last.cursor > value.cursor);
  drain.end(new GatewayError("UNAVAILABLE", "shutting down"), 0);
  await assert.rejects(next, { details: { resumeCursor: last.cursor } });
});

test("a watch ends when its caller's token expires", async () => {
  const log = newLog();
  const { events } = start(log, { expiresAtMs: Date.now() + 50 });
  // The expiry timer does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  await assert.rejects(events.next(), { code: "UNAUTHENTICATED" });
  clearInterval(alive);
});

test("all watches of a credential end when it is withdrawn, and share one listener", async () => {
  const log = newLog();
  const withdrawn = new AbortController();
  const revoked = withdrawn.signal;
  const reason = new GatewayError("UNAUTHENTICATED", "withdrawn", { reason: "KEY_REVOKED" });
  const begin = async () => {
    const leave = new AbortController();
    const opened = Promise.withResolvers<void>();
    const call = callOf(leave.signal, {});
    const events = watch(
      {
        ...{ log, intents: log, drain: new Drain() },
        call: { ...call, caller: { ...call.caller, revoked }, onOpen: () => opened.resolve() },
      },
      () => ({ kind: EventKind.PAYMENT, externalId, after: undefined, untilFinal: false }),
    )[Symbol.asyncIterator]();
    const outcome = events.next().then(
      () => assert.fail("it had an event"),
      (error) => error,
    );
    await Promise.race([opened.promise, outcome]);
    return { leave, outcome };
  };
  const watches = [await begin(), await begin(), await begin()];
  assert.equal(getEventListeners(revoked, "abort").length, 1);
  const [left, ...others] = watches;
  const gone = new GatewayError("CANCELLED", "the caller went away");
  left?.leave.abort(gone);
  assert.match(String(await left?.outcome), /went away/);
  withdrawn.abort(reason);
  for (const { outcome } of others) assert.equal((await outcome).details.reason, "KEY_REVOKED");
  const late = await begin().then(({ outcome }) => outcome);
  assert.equal(late.details.reason, "KEY_REVOKED");
});

test("text that is not a cursor is refused", async () => {
  const log = newLog();
  for (const after of ["latest", "x", "", "0"]) {
    const { events } = start(log, { after });
    await assert.rejects(events.next(), { code: "INVALID_ARGUMENT" }, after);
  }
});

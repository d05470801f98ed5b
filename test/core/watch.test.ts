import assert from "node:assert/strict";
import { getEventListeners } from "node:events";
import { describe, it, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Call } from "../../src/core/core.ts";
import { follow, stream, watch } from "../../src/core/watch.ts";
import { GatewayError } from "../../src/errors.ts";
import { CallOutcome, type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { Entry } from "../../src/ledger/log.ts";
import { Drain } from "../../src/live/drain.ts";
import { createMemoryLedger } from "../ledger/create.ts";
import { cursors, payment, payout, stateOn, step, type Told } from "../ledger/entries.ts";
import { callBegun, newCall } from "../ledger/new-call.ts";
import { overridden } from "../overridden.ts";

const account = "default";
const externalId = "order-1";
const newLog = () => createMemoryLedger({ retentionMs: 60_000 });

/** The entry of a callback, by default about the payment `p1`. */
const entry = (status: string, told: Told = {}) => payment({ paymentId: "p1", status, ...told });
const refund = (told: Told = {}) => entry("success", { operation: "refund", ...told });
const hold = () => entry("success", { source: "response", held: true });
const { UNKNOWN, NOT_DONE, NEEDS_OPERATOR } = CallOutcome;

/** An entry, or what becomes of a call: it is lost, and later not done, or given up. */
type Step = Entry | CallOutcome;

/** @returns the cursors of the events */
async function append(log: Ledger, ...steps: readonly Step[]): Promise<string[]> {
  const all: string[] = [];
  const given = newCall({ id: "lost", externalId });
  for (const one of steps) {
    if (typeof one !== "number") all.push((await log.append(account, one)).event?.cursor ?? "");
    else {
      if (one === UNKNOWN) await log.begin(account, given);
      const { calls } = await log.known(account, EventKind.PAYMENT, externalId);
      const intent = calls.find(({ id }) => id === given.id) ?? assert.fail();
      if (one === UNKNOWN) await log.end(account, intent, { state: "unknown" });
      else if (one === NOT_DONE) await log.end(account, intent, { state: "closed", key: "free" });
      else await log.giveUp(account, intent);
      all.push((await log.history(account, EventKind.PAYMENT, externalId, 1))[0]?.cursor ?? "");
    }
  }
  return all;
}

/** Begins a call; `end` closes it as refused, without an event. */
async function beginCall(ledger: Ledger) {
  const intent = await callBegun(ledger, account, { externalId });
  return { end: () => ledger.end(account, intent, { state: "closed", key: "free" }) };
}

/** A log that runs these while a watch reads the current state. */
function whileReading(log: Ledger, before: () => unknown, after: () => unknown = () => {}): Ledger {
  return overridden<Ledger>(log, {
    async known(...args) {
      await before();
      const known = await log.known(...args);
      await after();
      return known;
    },
  });
}

interface StartOptions extends Pick<Call, "push"> {
  readonly after?: string;
  readonly untilFinal?: boolean;
  readonly caller?: Partial<Call["caller"]>;
  /** The stream of all events, or of those of some kinds, instead of a watch. */
  readonly all?: boolean | readonly EventKind[];
}

function start(log: Ledger, options: StartOptions = {}) {
  const { after, untilFinal = false, caller, all, ...more } = options;
  const leaving = new AbortController();
  const opened = Promise.withResolvers<string | undefined>();
  const drain = new Drain();
  const call: Call = {
    caller: { name: "test", account, scopes: new Set(), ...caller },
    ...{ signal: leaving.signal, requestId: "r", onOpen: opened.resolve, ...more },
  };
  const context = { ledger: log, drain };
  const events = all
    ? stream(context, call, undefined, after, { kinds: all === true ? [] : all })
    : watch(context, call, EventKind.PAYMENT, {
        ...{ externalId, untilFinal, fromStart: after === "earliest" },
        ...(after !== undefined && after !== "earliest" && { afterCursor: after }),
      });
  return {
    events: events[Symbol.asyncIterator](),
    /** Resolves with the cursor that `onOpen` reports. */
    from: opened.promise,
    leave: () => leaving.abort(new GatewayError("CANCELLED", "the caller went away")),
    drain,
  };
}

/** The name of the next event; `end` if there is none. */
async function next(events: AsyncIterator<Event>): Promise<string> {
  const { done, value } = await events.next();
  return done ? "end" : nameOf(value);
}

/** The names of a stream's events until it ends by itself; last `open` if none comes for 10 s. */
async function told(events: AsyncIterator<Event>, all: string[] = []): Promise<string[]> {
  for (;;) {
    const name = await Promise.race([next(events), delay(10_000, "open", { ref: false })]);
    if (name === "end") return all;
    all.push(name);
    if (name === "open") return all;
  }
}

function nameOf(event: Event): string {
  if (event.callOutcome === CallOutcome.UNSPECIFIED) return step(event);
  return `call:${Object.entries(CallOutcome).find(([, value]) => value === event.callOutcome)?.[0]}`;
}

test("an event that arrives while a watch starts is delivered even if no state is known yet", async () => {
  const log = newLog();
  const { events, leave } = start(
    whileReading(
      log,
      () => append(log, UNKNOWN, NOT_DONE),
      () => append(log, entry("success")),
    ),
  );
  assert.equal(await next(events), "call:UNKNOWN");
  assert.equal(await next(events), "call:NOT_DONE");
  assert.equal(await next(events), "payment:success");
  leave();
});

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

/** Longer than a watch takes to see that a call is over. */
const looksMs = 1_200;

describe("until_final", { concurrency: true }, () => {
  /** Events that are stored in turn, and how many of them an open stream yields before it ends. */
  const live: readonly [why: string, entries: Step[], toldCount: number][] = [
    ["the success of a payment", [entry("pending"), entry("success")], 2],
    ["a failure", [entry("failure")], 1],
    ["a recurrent payment's end", [entry("success", { operation: "recurrent" })], 1],
    ["a hold that was made", [hold()], 1],
    [
      "a confirmation's end, whatever came before",
      [entry("pending"), entry("failure", { operation: "confirm" })],
      2,
    ],
    [
      "what pays, not with a refund, a cancellation or a look-up",
      [
        refund(),
        entry("success", { operation: "cancel" }),
        entry("failure", { operation: "lookup" }),
        entry("success"),
      ],
      4,
    ],
    ["the word that a lost call was not done", [UNKNOWN, NOT_DONE], 2],
    ["the word that nobody can tell", [UNKNOWN, NEEDS_OPERATOR], 2],
    ["the first end of several", [entry("failure"), entry("success", { paymentId: "p2" })], 1],
  ];
  for (const [why, entries, count] of live) {
    it(`ends with ${why}`, async () => {
      const log = newLog();
      const { events } = start(log, { untilFinal: true });
      const all = told(events);
      await delay(1);
      await append(log, ...entries);
      assert.equal((await all).length, count);
    });
  }

  it("ends with the current state if that is final", async () => {
    const log = newLog();
    await append(log, entry("failure"));
    assert.deepEqual(await told(start(log, { untilFinal: true }).events), ["payment:failure"]);
  });

  /** A pending payment, and a call that began after it. */
  async function withCall() {
    const log = newLog();
    await append(log, entry("pending"));
    // A payment that began before the call is no evidence for it.
    await delay(2);
    return { log, ...(await beginCall(log)) };
  }

  it("yields all events stored before the last call ended, however slowly it is read", async () => {
    const { log, end } = await withCall();
    await append(log, entry("failure"));
    const { events } = start(log, { untilFinal: true });
    assert.equal(await next(events), "payment:failure");
    const second = next(events);
    await append(log, refund());
    assert.equal(await second, "refund:success");
    await append(log, entry("success", { paymentId: "p2" }));
    await end();
    // By then the stream has checked whether the call is over.
    await delay(looksMs);
    assert.deepEqual(await told(events), ["payment:success"]);
  });

  for (const way of ["read", "pushed"] as const) {
    it(`does not end before an attempt that began before the call ended, if events are ${way}`, async () => {
      const { log, end } = await withCall();
      const seen: string[] = [];
      const push = (event: Event) => seen.push(nameOf(event)) > 0;
      const { events } = start(log, { untilFinal: true, ...(way === "pushed" && { push }) });
      assert.equal(await next(events), "payment:pending");
      await append(log, entry("failure"));
      assert.equal(await next(events), "payment:failure");
      const all = told(events, seen);
      await delay(1);
      await append(log, entry("pending", { paymentId: "p2" }));
      await end();
      await delay(looksMs);
      await append(log, entry("success", { paymentId: "p2" }));
      assert.deepEqual(await all, ["payment:pending", "payment:success"]);
    });
  }

  it("does not end before an attempt that begins while it checks whether the call is over", async () => {
    const { log, end } = await withCall();
    const [checking, begun] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    let isOver = false;
    const ledger = whileReading(
      log,
      () => {},
      async () => {
        if (!isOver) return;
        checking.resolve();
        await begun.promise;
      },
    );
    const { events } = start(ledger, { untilFinal: true });
    assert.equal(await next(events), "payment:pending");
    await append(log, entry("failure"));
    assert.equal(await next(events), "payment:failure");
    const attempt = next(events);
    await delay(1);
    isOver = true;
    await end();
    await checking.promise;
    await append(log, entry("pending", { paymentId: "p2" }));
    begun.resolve();
    assert.equal(await attempt, "payment:pending");
    const all = told(events);
    await delay(looksMs);
    await append(log, entry("success", { paymentId: "p2" }));
    assert.deepEqual(await all, ["payment:success"]);
  });

  /** Entries of a log, the index of the one that a stream resumes after, and what it yields. */
  const resumed: readonly [why: string, entries: Step[], at: number, told: string[]][] = [
    ["the end, with nothing behind it", [entry("pending"), entry("success")], 1, []],
    ["a failure", [entry("failure")], 0, []],
    ["a lost call that was not done", [entry("pending"), UNKNOWN, NOT_DONE], 2, []],
    [
      "a hold, before its confirmation",
      [hold(), entry("success", { operation: "confirm" })],
      0,
      ["confirm:success"],
    ],
    ["a hold alone", [hold()], 0, []],
    [
      "a failure, before another attempt",
      [entry("failure"), entry("success", { paymentId: "p2" })],
      0,
      ["payment:success"],
    ],
    [
      "the end, with a refund behind it",
      [entry("success"), refund(), entry("failure", { operation: "lookup" })],
      0,
      ["refund:success", "lookup:failure"],
    ],
    ["a refund behind the end", [entry("success"), refund()], 1, []],
    [
      "the end, with what became of the call behind it",
      [UNKNOWN, entry("success")],
      1,
      ["call:SETTLED"],
    ],
  ];
  for (const [why, entries, at, expected] of resumed) {
    it(`from the cursor of ${why}, yields the later events and ends`, async () => {
      const log = newLog();
      const after = (await append(log, ...entries))[at] ?? assert.fail();
      assert.deepEqual(await told(start(log, { after, untilFinal: true }).events), expected);
      // The control: without `until_final` the stream does not end.
      const { events, leave } = start(log, { after });
      for (const _ of expected) await events.next();
      const ends = events.next();
      assert.equal(await Promise.race([ends, delay(20, "open")]), "open");
      leave();
      await assert.rejects(ends, { code: "CANCELLED" });
    });
  }

  it("from the cursor of a final event, continues while a call is open", async () => {
    const { log, end } = await withCall();
    const [after = ""] = await append(log, entry("failure"));
    const ends = next(start(log, { after, untilFinal: true }).events);
    assert.equal(await Promise.race([ends, delay(looksMs, "open")]), "open");
    await end();
    assert.equal(await ends, "end");
  });

  it("from the cursor of another payment's event, continues", async () => {
    const log = newLog();
    await append(log, entry("failure"));
    const [after = ""] = await append(log, entry("failure", { externalId: "order-2" }));
    await append(log, entry("pending", { paymentId: "p2" }));
    const { events, leave } = start(log, { after, untilFinal: true });
    assert.equal(await next(events), "payment:pending");
    leave();
  });

  it("from the start, yields all events up to the first final one", async () => {
    const log = newLog();
    await append(log, entry("pending"), entry("success"), refund());
    const { events } = start(log, { after: "earliest", untilFinal: true });
    assert.deepEqual(await told(events), ["payment:pending", "payment:success"]);
  });
});

/** The name of the first event of a watch, and the state on it. */
async function first(log: Ledger) {
  const { events, leave } = start(log);
  const { value } = await events.next();
  leave();
  return [nameOf(value), stateOn(value)];
}

test("the first event of a watch carries the current state, and shows an open call", async () => {
  const log = newLog();
  await append(log, entry("failure"), UNKNOWN);
  assert.deepEqual(await first(log), ["call:UNKNOWN", "UNKNOWN"]);
  const paid = entry("success", { amount: "10.00" });
  await append(log, paid, refund({ amount: "4.00" }));
  assert.deepEqual(await first(log), ["payment:success", "PARTIALLY_REFUNDED"]);
});

test("the first event of a watch is UNKNOWN while a call is open that the log does not show", async () => {
  const log = newLog();
  await append(log, entry("failure"));
  await delay(2);
  const { end } = await beginCall(log);
  assert.deepEqual(await first(log), ["payment:failure", "UNKNOWN"]);
  await end();
  assert.deepEqual(await first(log), ["payment:failure", "FAILED"]);
});

test("a watch that resumes from a snapshot's cursor yields only events after the snapshot", async () => {
  const log = newLog();
  await append(log, entry("success"), entry("failure", { paymentId: "p0" }));
  const { events, leave } = start(log);
  const { value } = await events.next();
  assert.equal(
    step(value),
    "payment:success",
    "a late failure of another attempt hides no success",
  );
  leave();
  const resumed = start(log, { after: value.cursor });
  await append(log, refund());
  assert.equal(await next(resumed.events), "refund:success", "nothing again");
  resumed.leave();
});

for (const all of [false, true]) {
  const what = all ? "a stream" : "a watch";
  test(`${what} that starts without an event reports the cursor to resume from`, async () => {
    const log = newLog();
    const [other = ""] = await append(log, entry("success", { externalId: "order-2" }));
    const { events, from, leave } = start(log, { all });
    const first = events.next();
    assert.equal(await from, other);
    leave();
    await assert.rejects(first, { code: "CANCELLED" });
    const resumed = start(log, { after: other, all });
    await append(log, entry("pending"));
    assert.equal(await next(resumed.events), "payment:pending");
    assert.equal(await resumed.from, undefined);
    resumed.leave();
  });
}

test("a shutdown ends a watch with the cursor to resume from", async () => {
  const log = newLog();
  // The live part has this event too, but the shutdown comes before it is read from there.
  const { events, drain } = start(whileReading(log, () => append(log, entry("pending"))));
  const { value } = await events.next();
  drain.end(new GatewayError("UNAVAILABLE", "shutting down"), 0);
  await delay(1);
  const ended = { code: "UNAVAILABLE", details: { resumeCursor: value.cursor } };
  await assert.rejects(events.next(), ended);
});

test("the cursor to resume from is that of the last event, also if that was pushed", async () => {
  const log = newLog();
  await append(log, entry("pending"));
  const pushed: Event[] = [];
  const { events, drain } = start(log, { push: (event) => pushed.push(event) > 0 });
  const { value } = await events.next();
  const ends = events.next();
  await delay(1);
  await append(log, entry("success"));
  const [last] = pushed;
  assert.ok(last && last.cursor > value.cursor);
  drain.end(new GatewayError("UNAVAILABLE", "shutting down"), 0);
  await assert.rejects(ends, { details: { resumeCursor: last.cursor } });
});

test("a watch ends when its caller's token expires", async () => {
  const { events } = start(newLog(), { caller: { expiresAtMs: Date.now() + 50 } });
  // The expiry timer does not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  await assert.rejects(events.next(), { code: "UNAUTHENTICATED" });
  clearInterval(alive);
});

test("all watches of a credential end when it is withdrawn, and share one listener", async () => {
  const log = newLog();
  const withdrawn = new AbortController();
  const revoked = withdrawn.signal;
  const begin = async () => {
    const { events, from, leave } = start(log, { caller: { revoked } });
    const ended = events.next().then(
      () => assert.fail("it had an event"),
      (error) => error,
    );
    await Promise.race([from, ended]);
    return { leave, ended };
  };
  const [left, ...others] = [await begin(), await begin(), await begin()];
  assert.equal(getEventListeners(revoked, "abort").length, 1);
  left?.leave();
  assert.match(String(await left?.ended), /went away/);
  const reason = { reason: "KEY_REVOKED" };
  withdrawn.abort(new GatewayError("UNAUTHENTICATED", "withdrawn", reason));
  const late = await begin();
  for (const { ended } of [...others, late]) {
    assert.equal((await ended).details.reason, "KEY_REVOKED");
  }
});

test("a stream of some kinds leaves out all other events, stored, live and pushed", async () => {
  const log = newLog();
  const stored = [payment(), payout(), payment({ status: "success" })];
  const [, early] = await append(log, ...stored);
  const pushed: Event[] = [];
  const push = (event: Event) => pushed.push(event) > 0;
  const { events, leave } = start(log, { all: [EventKind.PAYOUT], after: "earliest", push });
  assert.equal((await events.next()).value?.cursor, early);
  const next = events.next();
  await new Promise(setImmediate);
  const live = [payment({ operation: "refund" }), payout({ status: "success" })];
  const [, late] = await append(log, ...live);
  assert.deepEqual(cursors(pushed), [late]);
  leave();
  await assert.rejects(next, { code: "CANCELLED" });
});

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "../../src/core/core.ts";
import { createStreamDrain } from "../../src/core/stream-drain.ts";
import { watch } from "../../src/core/watch.ts";
import { GatewayError } from "../../src/errors.ts";
import { paymentEntry } from "../../src/events/entry.ts";
import type { Entry, EventLog } from "../../src/events/log.ts";
import { createMemoryLog } from "../../src/events/memory/log.ts";
import { type Event, EventKind, EventSource } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentSchema } from "../../src/gen/payments/v1/payment_pb.ts";
import { createMemoryIntents } from "../../src/intents/memory/store.ts";
import { decode } from "../../src/wire/wire.ts";

const intents = createMemoryIntents({ firstLookMs: 60_000, giveUpMs: 60_000 });
const account = "default";
const externalId = "order";

function entry(status: string, paymentId = "p1", operation = "payment") {
  const text = JSON.stringify({
    external_id: externalId,
    operation,
    details: { payment_id: paymentId, status },
  });
  const made = paymentEntry(decode(PaymentSchema, text), {
    source: EventSource.CALLBACK,
    raw: Buffer.from(text),
  });
  assert.ok(made);
  return made;
}

function callOf(signal: AbortSignal, expiresAtMs?: number): Call {
  return {
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

function start(
  log: EventLog,
  options: { after?: string; untilFinal?: boolean; expiresAtMs?: number } = {},
) {
  const leave = new AbortController();
  const drain = createStreamDrain();
  const events = watch(
    { log, intents, call: callOf(leave.signal, options.expiresAtMs), drain },
    {
      kind: EventKind.PAYMENT,
      externalId,
      after: options.after,
      untilFinal: options.untilFinal ?? false,
    },
  );
  return { events: events[Symbol.asyncIterator](), leave, drain };
}

function statusOf(result: IteratorResult<{ resource: unknown }>): unknown {
  if (result.done) return "end";
  const { value } = result.value.resource as { value: { details?: { status: number } } };
  return value.details?.status;
}

const [pending, success, failure] = [2, 3, 4];

test("an event between the snapshot and the live part comes exactly once", async () => {
  for (const when of ["before", "after"] as const) {
    const log = createMemoryLog({ retentionMs: 60_000 });
    const made: (Event | undefined)[] = [];
    const append = async (told: Entry) => {
      made.push((await log.append(account, told)).event);
    };
    await append(entry("pending"));
    const injecting: EventLog = {
      ...log,
      async snapshot(...args) {
        if (when === "before") await append(entry("success"));
        const snapshot = await log.snapshot(...args);
        if (when === "after") await append(entry("success"));
        return snapshot;
      },
    };
    const { events, leave } = start(injecting);
    const seen: (Event | undefined)[] = [(await events.next()).value];
    await append(entry("success", "p1", "refund"));
    // Up to the last one: what came twice would be among them.
    for (;;) {
      const { done, value } = await events.next();
      assert(!done);
      seen.push(value);
      if (value.cursor === made.at(-1)?.cursor) break;
    }
    const expected = when === "before" ? made.slice(1) : made;
    assert.deepEqual(
      seen.map((event) => event?.cursor),
      expected.map((event) => event?.cursor),
    );
    assert.deepEqual(
      seen.map((event) => statusOf({ value: event as Event, done: false })),
      when === "before" ? [success, success] : [pending, success, success],
    );
    leave.abort();
    await assert.rejects(events.next(), { code: "CANCELLED" });
  }
});

test("an event between a snapshot that knew nothing and the live part is not lost", async () => {
  const log = createMemoryLog({ retentionMs: 60_000 });
  const injecting: EventLog = {
    ...log,
    async snapshot(...args) {
      const snapshot = await log.snapshot(...args);
      await log.append(account, entry("pending"));
      return snapshot;
    },
  };
  const { events } = start(injecting);
  assert.equal(statusOf(await events.next()), pending);
  await events.return?.();
});

test("until_final ends with the final state, be it the snapshot or a live event", async () => {
  const log = createMemoryLog({ retentionMs: 60_000 });
  await log.append(account, entry("pending"));
  const live = start(log, { untilFinal: true });
  assert.equal(statusOf(await live.events.next()), pending);
  await log.append(account, entry("failure"));
  assert.equal(statusOf(await live.events.next()), failure);
  assert.equal(statusOf(await live.events.next()), "end");

  const late = start(log, { untilFinal: true });
  assert.equal(statusOf(await late.events.next()), failure);
  assert.equal(statusOf(await late.events.next()), "end");
});

test("a snapshot's cursor goes on behind everything that the snapshot knew", async () => {
  const log = createMemoryLog({ retentionMs: 60_000 });
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
  const log = createMemoryLog({ retentionMs: 60_000 });
  await log.append(account, entry("pending"));
  const { events, drain } = start(log);
  const { value } = await events.next();
  const next = events.next();
  drain.end(new GatewayError("UNAVAILABLE", "shutting down"), 0);
  await assert.rejects(next, (error) => {
    assert.ok(error instanceof GatewayError);
    assert.equal(error.code, "UNAVAILABLE");
    assert.equal(error.details.resumeCursor, value.cursor);
    return true;
  });
});

test("a watch ends when its caller's token expires", async () => {
  const log = createMemoryLog({ retentionMs: 60_000 });
  const { events } = start(log, { expiresAtMs: Date.now() + 50 });
  // The timer alone would not keep the process waiting.
  const alive = setInterval(() => {}, 1_000);
  await assert.rejects(events.next(), { code: "UNAUTHENTICATED" });
  clearInterval(alive);
});

test("words that never were a cursor are refused", async () => {
  const log = createMemoryLog({ retentionMs: 60_000 });
  for (const after of ["latest", "x", "", "0"]) {
    const { events } = start(log, { after });
    await assert.rejects(events.next(), { code: "INVALID_ARGUMENT" }, after);
  }
});

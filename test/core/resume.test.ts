import assert from "node:assert/strict";
import { test } from "node:test";
import type { Call } from "../../src/core/core.ts";
import { stream, watch } from "../../src/core/watch.ts";
import { type Event, EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import type { Ledger } from "../../src/ledger/ledger.ts";
import type { EventLog } from "../../src/ledger/log.ts";
import { createMemoryLedger } from "../../src/ledger/memory.ts";
import { Drain } from "../../src/live/drain.ts";
import { payment } from "../ledger/entries.ts";

const account = "default";
const externalId = "order-1";

interface Opened {
  readonly events: AsyncIterator<Event>;
  /** The cursor that `onOpen` reports: where to resume a stream that starts without an event. */
  readonly from: Promise<string | undefined>;
  leave(): void;
}

interface Resuming {
  readonly after?: string;
  readonly untilFinal?: boolean;
  readonly resumed?: boolean;
}

function open(
  log: EventLog,
  { after, untilFinal = false, resumed }: Resuming,
  all = false,
): Opened {
  const leaving = new AbortController();
  const from = Promise.withResolvers<string | undefined>();
  const call: Call = {
    caller: { name: "test", account, scopes: new Set() },
    signal: leaving.signal,
    requestId: "r",
    onOpen: from.resolve,
    ...(resumed === undefined ? {} : { resumed }),
  };
  const options = { log, intents: log as Ledger, call, drain: new Drain() };
  const request = { kind: EventKind.PAYMENT, externalId, after, untilFinal };
  const events = all
    ? stream(options, () => ({ kinds: [], after }))
    : watch(options, () => request);
  return {
    events: events[Symbol.asyncIterator](),
    from: from.promise,
    leave: () => leaving.abort(),
  };
}

async function stored(log: EventLog, ...told: Parameters<typeof payment>[0][]): Promise<string[]> {
  const cursors: string[] = [];
  for (const each of told) {
    const { event } = await log.append(account, payment(each));
    assert.ok(event);
    cursors.push(event.cursor);
  }
  return cursors;
}

const newLog = () => createMemoryLedger({ retentionMs: 60_000 });

/** Whether the watch of a client that reconnects by itself ends at once. */
async function isOver(log: EventLog, resuming: Resuming): Promise<boolean> {
  const { events, from, leave } = open(log, { untilFinal: true, resumed: true, ...resuming });
  const first = events.next();
  const over = await Promise.race([
    first.then(({ done }) => done === true),
    from.then(() => false),
  ]);
  leave();
  await first.catch(() => undefined);
  return over;
}

test("events after the final one do not reopen the watch of a client that reconnects", async () => {
  const log = newLog();
  const told = [{ status: "success" }, { operation: "refund", status: "pending" }] as const;
  const [final, refund] = await stored(log, ...told);
  assert.equal(await isOver(log, { after: final ?? "" }), true);
  assert.equal(await isOver(log, { after: refund ?? "" }), true, "the current state was its first");
});

test("a watch that starts after a final event ends, unless a later event exists", async () => {
  const log = newLog();
  const [failed = ""] = await stored(log, { paymentId: "p-1", status: "failure" });
  const [other = ""] = await stored(log, { externalId: "order-2", paymentId: "p-2" });
  assert.equal((await open(log, { after: failed, untilFinal: true }).events.next()).done, true);
  const [again = ""] = await stored(log, { paymentId: "p-3", status: "pending" });
  const { events, leave } = open(log, { after: failed, untilFinal: true });
  assert.equal((await events.next()).value.cursor, again);
  leave();
  // A later cursor, of another payment's event: no watch of this payment has ended there.
  assert.equal(await isOver(log, { after: other }), false);
});

test("a stream that starts without an event reports the cursor to resume from", async () => {
  for (const all of [false, true]) {
    const log = newLog();
    const [other = ""] = await stored(log, { externalId: "order-2", paymentId: "p-2" });
    const { events, from, leave } = open(log, {}, all);
    const next = events.next();
    assert.equal(await from, other);
    leave();
    await assert.rejects(next, { code: "CANCELLED" });
    const resumed = open(log, { after: other }, all);
    const [cursor] = await stored(log, { status: "pending" });
    assert.equal((await resumed.events.next()).value.cursor, cursor);
    resumed.leave();
  }
});

test("a watch that starts with the current state reports no cursor before that event", async () => {
  const log = newLog();
  await stored(log, { status: "pending" });
  const { events, from, leave } = open(log, {});
  const first = events.next();
  assert.equal(await from, undefined);
  assert.ok((await first).value.cursor);
  leave();
});

test("a client that reconnects by itself must not use `earliest` as its cursor", async () => {
  const { events } = open(newLog(), { after: "earliest", resumed: true }, true);
  await assert.rejects(events.next(), { code: "INVALID_ARGUMENT" });
  const { from, events: control, leave } = open(newLog(), { after: "earliest" }, true);
  const next = control.next();
  assert.equal(await from, undefined);
  leave();
  await assert.rejects(next, { code: "CANCELLED" });
});

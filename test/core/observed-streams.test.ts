import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import type { Call } from "../../src/core/core.ts";
import { observedStream } from "../../src/core/observed-streams.ts";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { rememberTrace } from "../../src/ledger/stored-event.ts";
import { reportTo } from "../../src/report.ts";
import { noTracing, type Tracing } from "../../src/telemetry/tracing/tracing.ts";

/** A stream of `count` events that ends with `error`, and what is reported of it. */
function observed(count: number, error?: Error, onFail?: (error: Error) => void) {
  const told: unknown[] = [];
  const left = new AbortController();
  let fail: (error: Error) => void = () => assert.fail("no stream is open");
  async function* events(call: Call): AsyncGenerator<Event> {
    fail = (failure) => call.onFail?.(failure);
    for (let nth = 0; nth < count; nth++) yield create(EventSchema, { cursor: `${nth}` });
    if (error) throw error;
  }
  const report = reportTo({
    streamOpened: ({ transport }) => void told.push(`open ${transport}`),
    streamDelivered: () => void told.push("delivered"),
    streamEnded: ({ reason, detail }) => void told.push([reason, detail]),
  });
  const call = { transport: "grpc", signal: left.signal, ...(onFail && { onFail }) } as Call;
  return {
    told,
    events: observedStream(events, call, { tracing: noTracing, report }),
    fail: (failure: Error) => fail(failure),
    leave: () => left.abort(),
  };
}

test("a report has a stream's start at the first read, each taken event, and its end", async () => {
  const { told, events } = observed(2);
  assert.deepEqual(told, []);
  for await (const _ of events);
  assert.deepEqual(told, ["open grpc", "delivered", "delivered", ["completed", undefined]]);
});

test("a pushed event is reported once if the edge takes it, and not at all if the edge declines it", async () => {
  let offer: Call["push"];
  async function* events(call: Call): AsyncGenerator<Event> {
    offer = call.push;
    yield create(EventSchema, { cursor: "1" });
  }
  const told: string[] = [];
  const spans: string[] = [];
  const tracing: Tracing = {
    start(name, { links }) {
      const span = noTracing.start(name, { kind: "internal" });
      return { ...span, end: () => void spans.push(`${name} ${links?.[0]}`) };
    },
  };
  const report = reportTo({ streamDelivered: () => void told.push("delivered") });
  let isFull = false;
  const call = { signal: new AbortController().signal, push: () => !isFull } as unknown as Call;
  const stream = observedStream(events, call, { tracing, report })[Symbol.asyncIterator]();
  await stream.next();
  const pushed = create(EventSchema, { cursor: "2" });
  rememberTrace(pushed, "00-trace");
  assert.equal(offer?.(pushed), true);
  assert.deepEqual([told, spans], [["delivered"], ["deliver event 00-trace"]]);
  isFull = true;
  assert.equal(offer?.(pushed), false);
  assert.deepEqual([told.length, spans.length], [1, 1]);
  await stream.return?.(undefined);
});

test("a report says whether the reader left or an error ended the stream", async () => {
  const left = observed(2);
  for await (const _ of left.events) break;
  assert.deepEqual(left.told, ["open grpc", ["left", undefined]]);

  const slow = new GatewayError("RESOURCE_EXHAUSTED", "slow", { reason: "SLOW_CONSUMER" });
  for (const [error, why] of [
    [slow, ["RESOURCE_EXHAUSTED", "SLOW_CONSUMER"]],
    [new Error("odd"), ["INTERNAL", undefined]],
  ] as const) {
    const { told, events } = observed(0, error);
    await assert.rejects(events[Symbol.asyncIterator]().next(), error);
    assert.deepEqual(told, ["open grpc", why]);
  }
});

test("a stream that fails while its reader does not read is reported with its error", async () => {
  const slow = new GatewayError("RESOURCE_EXHAUSTED", "slow", { reason: "SLOW_CONSUMER" });
  for (const [isGone, why] of [
    [false, ["RESOURCE_EXHAUSTED", "SLOW_CONSUMER"]],
    // A reader that has gone away is reported as left, not as cut off.
    [true, ["left", undefined]],
  ] as const) {
    const heard: Error[] = [];
    const { told, events, fail, leave } = observed(2, undefined, (error) => heard.push(error));
    const reader = events[Symbol.asyncIterator]();
    await reader.next();
    if (isGone) leave();
    fail(slow);
    await reader.return?.();
    assert.deepEqual(told.at(-1), why);
    assert.deepEqual(heard, [slow], "the edge hears of it as well");
  }
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { Code, createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { createFeed } from "../graphql/feed.ts";
import { until } from "../until.ts";
import { failure, http2Call, start, wires } from "./start.ts";

function event(cursor: string, padding = 0): Event {
  return create(EventSchema, { cursor, externalId: "order-1".padEnd(padding, "x") });
}

/** A watch of a client that reads only when told. */
function watchBy(session: http2.ClientHttp2Session, contentType: string) {
  const head = http2Call("WatchPayment", { "content-type": contentType, te: "trailers" });
  const stream = session.request(head);
  // An envelope of an empty message.
  return stream.end(Buffer.alloc(5));
}

/** Resolves when the number has not changed for two round trips. */
async function settles(session: http2.ClientHttp2Session, count: () => number): Promise<void> {
  for (let last = -1; count() !== last; ) {
    last = count();
    await new Promise((resolve) => session.ping(resolve));
    await new Promise((resolve) => session.ping(resolve));
  }
}

for (const { protocol, httpVersion, name } of wires) {
  test(`a watch that is cancelled before its first event ends in the core, by ${name}`, async () => {
    const ended = Promise.withResolvers<void>();
    await using started = await start({
      // biome-ignore lint/correctness/useYield: it ends before its first event
      async *watchPayment(_, { signal }: Call) {
        if (!signal.aborted) await once(signal, "abort");
        ended.resolve();
      },
    });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const controller = new AbortController();
    const watch = client.watchPayment({}, { signal: controller.signal })[Symbol.asyncIterator]();
    const next = watch.next();
    while (started.calls.length === 0) await new Promise(setImmediate);
    controller.abort();
    await assert.rejects(next, { code: Code.Canceled });
    await ended.promise;
    assert.equal(started.calls[0]?.call.signal.aborted, true);
    const record = await started.logged(({ message }) => message === "rpc");
    assert.equal(record.code, "CANCELLED");
  });
}

test("watchers that leave together end in several turns of the event loop", async () => {
  const watchers = 80;
  let turn = 0;
  const endedIn: number[] = [];
  const counting = setImmediate(function next() {
    turn += 1;
    immediate = setImmediate(next);
  });
  let immediate = counting;
  const opened = new Set<Call>();
  await using started = await start({
    watchPayment: async function* (_request: unknown, call: Call): AsyncGenerator<Event> {
      call.signal.addEventListener("abort", () => endedIn.push(turn));
      opened.add(call);
      yield event("c1");
      if (!call.signal.aborted) await once(call.signal, "abort");
    },
  });
  const session = http2.connect(started.url);
  try {
    for (let i = 0; i < watchers; i++) {
      watchBy(session, "application/grpc").on("error", () => {});
    }
    await until(() => opened.size === watchers);
    session.destroy();
    await until(() => endedIn.length === watchers);
  } finally {
    clearImmediate(immediate);
    session.destroy();
  }
  const counts = new Map<number, number>();
  for (const one of endedIn) counts.set(one, (counts.get(one) ?? 0) + 1);
  assert.ok(Math.max(...counts.values()) <= 32, [...counts.values()].join());
  assert.equal(endedIn.length, watchers);
});

/** A stream that opens when told, yields one event when told, and then fails. */
function scripted() {
  const open = Promise.withResolvers<void>();
  const yields = Promise.withResolvers<void>();
  return {
    open: open.resolve,
    yields: yields.resolve,
    async *streamEvents(_request: unknown, call: Call): AsyncGenerator<Event> {
      await open.promise;
      call.onOpen?.("c0");
      await yields.promise;
      yield create(EventSchema, { cursor: "c1" });
      throw new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c1" });
    },
  };
}

for (const { protocol, httpVersion, name } of wires) {
  test(`headers are sent when the stream has opened, before its first event, by ${name}`, async () => {
    const script = scripted();
    await using started = await start({ streamEvents: script.streamEvents });
    const client = createClient(EventService, started.transport(protocol, httpVersion));
    const header = Promise.withResolvers<Headers>();
    const events = client.streamEvents({}, { onHeader: header.resolve })[Symbol.asyncIterator]();
    const first = events.next();
    script.open();
    // The headers arrive alone, since no event has been yielded yet.
    assert.equal((await header.promise).get("x-ratelimit-limit"), "10");
    assert.ok((await header.promise).has("x-request-id"));
    assert.equal((await header.promise).get("x-start-cursor"), "c0");
    script.yields();
    assert.equal((await first).value?.event?.cursor, "c1");
    const { code, metadata } = await failure(events.next());
    assert.deepEqual([code, metadata.get("x-resume-cursor")], [Code.Unavailable, "c1"]);
  });
}

test("a silent watch sends heartbeats only if its client asked for them", async () => {
  const overWire = async ({ protocol, httpVersion, name }: (typeof wires)[number]) => {
    let beat = Promise.withResolvers<void>();
    await using started = await start({
      async *watchPayment({ heartbeat, heartbeatSeconds }) {
        yield event("c1");
        await (heartbeat || heartbeatSeconds ? beat.promise : undefined);
        yield event("c2");
      },
    });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    for (const asked of [{ heartbeatSeconds: 1 }, { heartbeat: durationFromMs(1_000) }, {}]) {
      const cursors: (string | undefined)[] = [];
      beat = Promise.withResolvers<void>();
      for await (const message of client.watchPayment(asked)) {
        cursors.push(message.event?.cursor);
        if (!message.event) beat.resolve();
      }
      const isAsked = Object.keys(asked).length > 0;
      const expected = isAsked ? ["c1", undefined, "c2"] : ["c1", "c2"];
      assert.deepEqual(cursors, expected, name);
    }
  };
  await Promise.all(wires.map(overWire));
});

/**
 * Fails a stream while its client does not read. `reads`: whether the client reads on after that.
 * Returns the code of the reset, the trailers, and whether all events arrived that were pulled.
 */
async function failing(reads: boolean) {
  const cut = new GatewayError("RESOURCE_EXHAUSTED", "too slow", { resumeCursor: "c-last" });
  let yielded = 0;
  let tell: Call["onFail"];
  let failed = false;
  await using started = await start({
    async *watchPayment(_, { onFail }) {
      tell = onFail;
      while (!failed && yielded < 1_000) yield event(`c${yielded++}`, 4_096);
      throw cut;
    },
  });
  const session = http2.connect(started.url);
  const stream = watchBy(session, "application/grpc+proto");
  stream.on("error", () => undefined);
  let trailers: http2.IncomingHttpHeaders = {};
  stream.on("trailers", (headers) => {
    trailers = headers;
  });
  await once(stream, "response");
  await settles(session, () => yielded);
  assert.ok(yielded > 0 && yielded < 500, `${yielded} events pulled for a client that reads none`);
  failed = true;
  tell?.(cut);
  const closed = new Promise((resolve) => stream.once("close", resolve));
  let received = 0;
  const count = (chunk: Buffer) => {
    received += chunk.length;
  };
  if (reads) stream.on("data", count);
  await closed;
  session.destroy();
  return { reset: stream.rstCode, trailers, isWhole: received > yielded * 4_096 };
}

test("a slow client that reads on in time receives its events, and the error with its resume cursor", async () => {
  const { reset, trailers, isWhole } = await failing(true);
  assert.ok(isWhole);
  assert.equal(reset, http2.constants.NGHTTP2_NO_ERROR);
  assert.equal(trailers["grpc-status"], "8");
  assert.equal(trailers["x-resume-cursor"], "c-last");
});

test("a slow client that does not read on is reset with the HTTP/2 code for RESOURCE_EXHAUSTED", async () => {
  const { reset } = await failing(false);
  assert.equal(reset, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

for (const { protocol, httpVersion, name } of wires) {
  test(`pushed events keep their order among the others, and the error comes last, by ${name}`, async () => {
    const { watch, waits, push, offer, fail } = createFeed();
    await using started = await start({ watchPayment: watch });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const large = 5_000;
    const seen: (Event | undefined)[] = [];
    const read = (async () => {
      for await (const message of client.watchPayment({})) seen.push(message.event);
    })();
    await until(waits);
    assert.equal(offer(event("c1")), true);
    assert.equal(offer(event("c2", large)), true);
    await until(() => seen.length === 2);
    push(event("c3"));
    await until(() => seen.length === 3);
    await until(waits);
    assert.equal(offer(event("c4")), true);
    fail(new GatewayError("UNAVAILABLE", "the gateway is shutting down", { resumeCursor: "c4" }));
    await assert.rejects(read, /shutting down/);
    assert.deepEqual(
      seen,
      ["c1", "c2", "c3", "c4"].map((cursor) => event(cursor, cursor === "c2" ? large : 0)),
    );
    assert.equal(offer(event("c5")), false, "nothing is written behind the end");
  });
}

test("a full response takes no pushed event until its client reads on", async () => {
  const { watch, waits, offer } = createFeed();
  await using started = await start({ watchPayment: watch });
  const session = http2.connect(started.url, { settings: { initialWindowSize: 1_000 } });
  const stream = watchBy(session, "application/grpc");
  try {
    stream.pause();
    await until(waits);
    let taken = 0;
    while (taken < 1_000 && offer(event("c1", 20_000))) taken += 1;
    assert.ok(taken > 0 && taken < 1_000, `${taken} were taken`);
    stream.resume();
    await until(() => offer(event("c2")));
  } finally {
    stream.close();
    session.destroy();
  }
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type grpc from "@grpc/grpc-js";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import {
  PaymentService,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { until } from "../until.ts";
import { grpcJsClient, start, wires } from "./start.ts";

function event(cursor: string, padding = 0): Event {
  return create(EventSchema, { cursor, externalId: "order-1".padEnd(padding, "x") });
}

/** A watch that yields its first events and then waits for its signal, as the core's watches do. */
function endless(first: readonly string[], ended: () => void) {
  return async function* (_request: unknown, { signal }: Call): AsyncGenerator<Event> {
    try {
      for (const cursor of first) yield event(cursor);
      if (!signal.aborted) await once(signal, "abort");
    } finally {
      ended();
    }
  };
}

async function failure(messages: AsyncIterator<unknown>): Promise<ConnectError> {
  try {
    while (!(await messages.next()).done);
  } catch (error) {
    return ConnectError.from(error);
  }
  throw new assert.AssertionError({ message: "the stream came to its end" });
}

for (const { protocol, httpVersion, name } of wires) {
  test(`a cancelled watch ends in the core, with or without an event before, by ${name}`, async () => {
    for (const first of [[], ["c1"]]) {
      const ended = Promise.withResolvers<void>();
      await using started = await start({ watchPayment: endless(first, ended.resolve) });
      const client = createClient(PaymentService, started.transport(protocol, httpVersion));
      const controller = new AbortController();
      const watch = client.watchPayment({}, { signal: controller.signal })[Symbol.asyncIterator]();
      const next = watch.next();
      if (first.length > 0) assert.equal((await next).value?.event?.cursor, "c1");
      else while (started.calls.length === 0) await new Promise(setImmediate);
      controller.abort();
      const outcome = first.length > 0 ? failure(watch) : failure({ next: () => next });
      assert.equal((await outcome).code, Code.Canceled);
      await ended.promise;
      assert.equal(started.calls[0]?.call.signal.aborted, true);
      const record = await started.logged(({ message }) => message === "rpc");
      assert.equal(record.code, "CANCELLED");
    }
  });

  test(`a watch that stops at its deadline ends with DEADLINE_EXCEEDED, not as complete, by ${name}`, async () => {
    const ended = Promise.withResolvers<void>();
    await using started = await start({ watchPayment: endless(["c1"], ended.resolve) });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const headers = { "connect-timeout-ms": "30", "grpc-timeout": "30m" };
    const error = await failure(client.watchPayment({}, { headers })[Symbol.asyncIterator]());
    assert.equal(error.code, Code.DeadlineExceeded);
    await ended.promise;
  });

  test(`a watch that the core cuts gives its client the resume cursor by ${name}`, async () => {
    await using started = await start({
      async *streamEvents() {
        yield event("c1");
        throw new GatewayError("UNAVAILABLE", "the gateway is shutting down", {
          reason: "SHUTDOWN",
          resumeCursor: "c1",
        });
      },
    });
    const client = createClient(EventService, started.transport(protocol, httpVersion));
    const watch = client.streamEvents({})[Symbol.asyncIterator]();
    assert.equal((await watch.next()).value?.event?.cursor, "c1");
    const error = await failure(watch);
    assert.equal(error.code, Code.Unavailable);
    assert.equal(error.findDetails(ErrorInfoSchema)[0]?.metadata.resume_cursor, "c1");
    assert.equal(error.metadata.get("x-resume-cursor"), "c1");
  });
}

test("grpc-js receives events at once, and its cancellation reaches the core", async () => {
  const ended = Promise.withResolvers<void>();
  await using started = await start({ watchPayment: endless(["c1", "c2"], ended.resolve) });
  const client = grpcJsClient(PaymentService, started.port);
  const { watchPayment } = client as never as {
    watchPayment(request: unknown): grpc.ClientReadableStream<{ event: Event }>;
  };
  const watch = watchPayment.call(client, create(WatchPaymentRequestSchema, {}));
  const cursors: string[] = [];
  for await (const message of watch.iterator({ destroyOnReturn: false })) {
    cursors.push(message.event.cursor);
    if (cursors.length === 2) break;
  }
  assert.deepEqual(cursors, ["c1", "c2"]);
  watch.on("error", () => {});
  watch.cancel();
  await ended.promise;
  client.close();
});

test("an event is sent before the next one is yielded", async () => {
  const gate = Promise.withResolvers<void>();
  await using started = await start({
    async *watchPayment() {
      yield event("c1");
      await gate.promise;
      yield event("c2");
    },
  });
  const client = createClient(PaymentService, started.transport("connect", "1.1"));
  const watch = client.watchPayment({})[Symbol.asyncIterator]();
  assert.equal((await watch.next()).value?.event?.cursor, "c1");
  gate.resolve();
  assert.equal((await watch.next()).value?.event?.cursor, "c2");
  assert.equal((await watch.next()).done, true);
});

for (const contentType of ["application/grpc+proto", "application/connect+proto"]) {
  test(`no more events are pulled for a client that stops reading (${contentType})`, async () => {
    const total = 1000;
    let pulled = 0;
    await using started = await start({
      async *watchPayment() {
        for (; pulled < total; pulled += 1) yield event(`c${pulled}`, 4096);
      },
    });
    const session = http2.connect(started.url);
    const stream = session.request({
      ":method": "POST",
      ":path": "/payments.v1.PaymentService/WatchPayment",
      "content-type": contentType,
      te: "trailers",
    });
    const body = toBinary(WatchPaymentRequestSchema, create(WatchPaymentRequestSchema, {}));
    stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
    await once(stream, "response");

    // The client reads nothing: the gateway stops pulling events, far from the end.
    let last = -1;
    while (pulled !== last) {
      last = pulled;
      await new Promise((resolve) => session.ping(resolve));
      await new Promise((resolve) => session.ping(resolve));
    }
    assert.ok(pulled > 0 && pulled < total / 2, `${pulled} of ${total} pulled`);

    let received = 0;
    stream.on("data", (chunk: Buffer) => {
      received += chunk.length;
    });
    await once(stream, "end");
    assert.equal(pulled, total);
    assert.ok(received > total * 4096);
    session.destroy();
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
      const stream = session.request({
        ":method": "POST",
        ":path": "/payments.v1.PaymentService/WatchPayment",
        "content-type": "application/grpc",
      });
      stream.on("error", () => {});
      stream.end(Buffer.alloc(5));
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

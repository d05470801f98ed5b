import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentService,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { until } from "../until.ts";
import { start, wires } from "./start.ts";

function event(cursor: string, padding = 0): Event {
  return create(EventSchema, { cursor, externalId: "order-1".padEnd(padding, "x") });
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

import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentService,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { start, wires } from "./start.ts";

function event(cursor: string, padding = 0): Event {
  return create(EventSchema, { cursor, externalId: "order-1".padEnd(padding, "x") });
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

test("a watch with heartbeats ends in the core when its caller leaves", async () => {
  const ended = Promise.withResolvers<void>();
  await using started = await start({
    async *watchPayment(_, { signal }: Call) {
      try {
        yield event("c1");
        if (!signal.aborted) await once(signal, "abort");
      } finally {
        ended.resolve();
      }
    },
  });
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  const leave = new AbortController();
  const watch = client
    .watchPayment({ heartbeatSeconds: 1 }, { signal: leave.signal })
    [Symbol.asyncIterator]();
  await watch.next();
  assert.equal((await watch.next()).value.event, undefined);
  leave.abort();
  await ended.promise;
});

/**
 * Fails a stream while its client does not read. `reads`: whether the client reads on after that.
 * Returns the code of the reset and the trailers.
 */
async function failing(reads: boolean) {
  const cut = new GatewayError("RESOURCE_EXHAUSTED", "too slow", { resumeCursor: "c-last" });
  let yielded = 0;
  let tell: Call["onFail"];
  let failed = false;
  await using started = await start({
    async *watchPayment(_, { onFail }) {
      tell = onFail;
      while (!failed) yield event(`c${yielded++}`, 4_096);
      throw cut;
    },
  });
  const session = http2.connect(started.url);
  const stream = session.request({
    ":method": "POST",
    ":path": "/payments.v1.PaymentService/WatchPayment",
    "content-type": "application/grpc+proto",
    te: "trailers",
  });
  const body = toBinary(WatchPaymentRequestSchema, create(WatchPaymentRequestSchema, {}));
  stream.end(Buffer.concat([Buffer.from([0, 0, 0, 0, body.length]), body]));
  stream.on("error", () => undefined);
  let trailers: http2.IncomingHttpHeaders = {};
  stream.on("trailers", (headers) => {
    trailers = headers;
  });
  await once(stream, "response");
  for (let last = -1; yielded !== last; ) {
    last = yielded;
    await new Promise((resolve) => session.ping(resolve));
    await new Promise((resolve) => session.ping(resolve));
  }
  failed = true;
  tell?.(cut);
  const closed = new Promise((resolve) => stream.once("close", resolve));
  if (reads) stream.resume();
  await closed;
  session.destroy();
  return { reset: stream.rstCode, trailers };
}

test("a slow client that reads on in time receives the error with its resume cursor", async () => {
  const { reset, trailers } = await failing(true);
  assert.equal(reset, http2.constants.NGHTTP2_NO_ERROR);
  assert.equal(trailers["grpc-status"], "8");
  assert.equal(trailers["x-resume-cursor"], "c-last");
});

test("a slow client that does not read on is reset with the HTTP/2 code for RESOURCE_EXHAUSTED", async () => {
  const { reset } = await failing(false);
  assert.equal(reset, http2.constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

import assert from "node:assert/strict";
import http2 from "node:http2";
import net from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import type { Call } from "../../src/core/core.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  GetPaymentResponseSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { h2Peer } from "../hardening/h2-peer.ts";
import { listen } from "../listen.ts";
import { start } from "../rpc/start.ts";

const answers = { getPayment: async () => create(GetPaymentResponseSchema, { cursor: "c1" }) };
const quick = { keepAliveIntervalMs: 20, keepAliveTimeoutMs: 50 };
test("a peer that answers no PING is cut, and stays if the gateway sends none", async () => {
  await using asked = await start(answers, { limits: quick });
  await using unasked = await start(answers, { limits: { ...quick, keepAliveIntervalMs: 0 } });
  const left = await h2Peer(unasked.port, { mute: true });
  await (await h2Peer(asked.port, { mute: true })).closed;
  assert.equal(left.isClosed, false);
  left.socket.destroy();
});

test("a peer that answers PINGs stays connected without a call", async () => {
  await using started = await start(answers, { limits: quick });
  const session = http2.connect(started.url);
  let pings = 0;
  await new Promise<void>((resolve) => {
    session.on("ping", () => ++pings === 10 && resolve());
  });
  const stream = session.request({
    ":method": "POST",
    ":path": "/payments.v1.PaymentService/GetPayment",
    "content-type": "application/json",
  });
  stream.end("{}");
  assert.equal(await text(stream), '{"cursor":"c1"}');
  session.destroy();
});

test("a peer that becomes unreachable is cut, and its watch ends in the core", async () => {
  const ended = Promise.withResolvers<void>();
  await using started = await start(
    {
      async *watchPayment(_request: unknown, { signal }: Call): AsyncGenerator<Event> {
        try {
          const event = create(EventSchema, { cursor: "c1", externalId: "x".repeat(100_000) });
          while (!signal.aborted) yield event;
        } finally {
          ended.resolve();
        }
      },
    },
    { limits: quick },
  );
  // The cable between the two: once cut, it forwards nothing, and neither end sees a close.
  const cable = net.createServer((near) => {
    const far = net.connect(started.port, "127.0.0.1");
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) socket.on("error", () => {});
    cable.once("cut", () => {
      near.unpipe().pause();
      far.unpipe().pause();
    });
    cable.once("gone", () => {
      near.destroy();
      far.destroy();
    });
  });
  const port = await listen(cable);
  const transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` });
  const events = createClient(PaymentService, transport).watchPayment({})[Symbol.asyncIterator]();
  await events.next();
  cable.emit("cut");
  await ended.promise;
  cable.emit("gone");
  await assert.rejects(async () => {
    while (!(await events.next()).done);
  });
  cable.close();
});

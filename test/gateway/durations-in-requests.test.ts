import assert from "node:assert/strict";
import { test } from "node:test";
import { durationFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { EventKind } from "../../src/gen/payments/v1/event_pb.ts";
import { EventService } from "../../src/gen/payments/v1/event_service_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { ofSuite } from "../of-suite.ts";
import { startTestGateway } from "../start.ts";

const gateway = ofSuite(startTestGateway);

const transport = () => createConnectTransport({ baseUrl: gateway.rpcUrl, httpVersion: "1.1" });
const about = { kind: EventKind.PAYMENT, externalId: "order-1" };

test("a watch token lives for its ttl, else its ttl_seconds, else the default", async () => {
  const { createWatchToken } = createClient(EventService, transport());
  for (const [init, seconds] of [
    [{ ttl: durationFromMs(3_600_999) }, 3_600],
    [{ ttl: durationFromMs(60_000), ttlSeconds: 5 }, 60],
    [{ ttlSeconds: 5 }, 5],
    [{}, 900],
  ] as const) {
    const earliest = Math.floor(Date.now() / 1_000) + seconds;
    const { expiresAt } = await createWatchToken({ ...about, ...init });
    const latest = Math.floor(Date.now() / 1_000) + seconds;
    const expires = timestampMs(expiresAt ?? assert.fail()) / 1_000;
    assert.ok(earliest <= expires && expires <= latest, `${seconds} s`);
  }
});

test("a duration out of bounds is refused with the field's name", async () => {
  const { createWatchToken } = createClient(EventService, transport());
  for (const ttl of [0, 999, 86_400_001]) {
    await assert.rejects(createWatchToken({ ...about, ttl: durationFromMs(ttl) }), (error) =>
      /^\[invalid_argument\] ttl: /.test(ConnectError.from(error).message),
    );
  }
  const { watchPayment } = createClient(PaymentService, transport());
  for (const heartbeat of [-1, 0, 500, 3_600_001]) {
    const request = { externalId: "order-1", heartbeat: durationFromMs(heartbeat) };
    await assert.rejects(watchPayment(request)[Symbol.asyncIterator]().next(), (error) =>
      /^\[invalid_argument\] heartbeat: /.test(ConnectError.from(error).message),
    );
  }
  // The first result is the refusal: no heartbeat is sent before the request is validated.
  for (const heartbeatSeconds of [-1, 0, 3_601]) {
    const request = { externalId: "order-1", heartbeatSeconds };
    await assert.rejects(watchPayment(request)[Symbol.asyncIterator]().next(), (error) =>
      /^\[invalid_argument\] heartbeat_seconds: /.test(ConnectError.from(error).message),
    );
  }
});

test("a duration as JSON text is accepted", async () => {
  const answer = await fetch(`${gateway.rpcUrl}/payments.v1.EventService/CreateWatchToken`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"kind":"EVENT_KIND_PAYMENT","external_id":"order-1","ttl":"1.5s"}',
  });
  assert.equal(answer.status, 200);
});

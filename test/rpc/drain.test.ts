import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import net from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { GatewayError } from "../../src/errors.ts";
import { EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { ask } from "../ask.ts";
import { until } from "../until.ts";
import { answers, getPaymentPath, held, http2Call, knownJson, start } from "./start.ts";

test("a drain lets calls in flight finish, closes idle connections and accepts no new ones", async () => {
  const { core, release } = held();
  await using started = await start(core);
  const idleH2 = http2.connect(started.url);
  await once(idleH2, "remoteSettings");
  const idleH1 = net.connect(started.port, "127.0.0.1");
  idleH1.write(`GET / HTTP/1.1\r\nHost: x\r\n\r\n`);
  await once(idleH1, "data");
  const silent = net.connect(started.port, "127.0.0.1");
  await once(silent, "connect");
  const closed = [idleH2, idleH1, silent].map((connection) => once(connection, "close"));
  idleH1.resume();
  silent.resume();

  const agent = new http.Agent({ keepAlive: true });
  const h1 = http.request(started.url + getPaymentPath, {
    agent,
    method: "POST",
    headers: { "content-type": "application/json" },
  });
  h1.end("{}");
  const h2 = http2.connect(started.url);
  const stream = h2.request(http2Call()).end("{}");
  await until(() => started.calls.length === 2);

  const drained = started.server.drain();
  await Promise.all(closed);
  const late = net.connect(started.port, "127.0.0.1");
  await assert.rejects(once(late, "connect"), { code: "ECONNREFUSED" });

  const answer = once(h1, "response");
  release();
  const [response] = (await answer) as [http.IncomingMessage];
  assert.equal(response.headers.connection, "close");
  assert.equal(await text(response), knownJson);
  assert.equal(await text(stream), knownJson);
  await drained;
  assert.equal(h2.closed, true);
  agent.destroy();
});

test("a drain does not wait for clients that begin no TLS handshake, or do not end it", async () => {
  await using started = await start(answers, { tls: true });
  const silent = net.connect(started.port, "127.0.0.1");
  const halfway = net.connect(started.port, "127.0.0.1");
  halfway.write(Uint8Array.of(22, 3, 1));
  const closed = [silent, halfway].map((socket) => once(socket.resume(), "close"));
  // Connections are accepted in their order.
  const client = createClient(PaymentService, started.transport("connect", "1.1"));
  await client.getPayment({});

  await Promise.all([started.server.drain(), ...closed]);
});

test("a drain does not wait for a request that stalls longer than its time-out", async () => {
  const limits = { headersTimeoutMs: 200, requestTimeoutMs: 200 };
  await using started = await start(answers, { limits });
  const post = `POST ${getPaymentPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
  const closed = [post, `${post}Content-Length: 9\r\n\r\n{`].map((part) => {
    const socket = net.connect(started.port, "127.0.0.1");
    socket.write(part);
    return once(socket.resume(), "close");
  });
  // Connections are accepted in their order.
  const client = createClient(PaymentService, started.transport("connect", "1.1"));
  await client.getPayment({});

  await Promise.all([started.server.drain(), ...closed]);
});

test("a drain closes the connection of a stream when the stream ends", async () => {
  const release = Promise.withResolvers<void>();
  await using started = await start({
    async *watchPayment() {
      yield create(EventSchema, { cursor: "c1" });
      await release.promise;
      throw new GatewayError("UNAVAILABLE", "the gateway is shutting down");
    },
  });
  const agent = new http.Agent({ keepAlive: true });
  const request = http.request(`${started.url}/payments.v1.PaymentService/WatchPayment`, {
    agent,
    method: "POST",
    headers: { "content-type": "application/connect+json" },
  });
  request.end(Buffer.from([0, 0, 0, 0, 2, 0x7b, 0x7d]));
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  assert.equal(response.headers.connection, "keep-alive");
  const drained = started.server.drain();
  release.resolve();
  assert.match(await text(response), /"code":"unavailable"/);
  await drained;
  agent.destroy();
});

/* `health.test.ts` has the health that an announced drain reports. */
test("an announced drain closes kept connections, but still serves calls", async () => {
  await using started = await start(answers);
  const agent = new http.Agent({ keepAlive: true });
  const connectionOf = async () => {
    const headers = { "content-type": "application/json" };
    const answer = await ask(started.url + getPaymentPath, {
      ...{ agent, method: "POST", headers, body: "{}" },
    });
    assert.equal(answer.text, knownJson);
    return answer.headers.connection;
  };
  assert.equal(await connectionOf(), "keep-alive");
  started.server.announceDrain();
  assert.equal(await connectionOf(), "close");
  // The last call's connection was closed, so this one opens a new connection.
  assert.equal(await connectionOf(), "close");
  const h2 = createClient(PaymentService, started.transport("grpc", "2"));
  assert.equal((await h2.getPayment({})).cursor, "c1");
  agent.destroy();
});

test("a drain that takes too long ends when the calls that are left are ended, and then cut", async () => {
  const reasons: unknown[] = [];
  await using started = await start({
    getPayment: (_request, call) =>
      new Promise((_resolve, reject) => {
        call.signal.addEventListener("abort", () => {
          reasons.push(call.signal.reason);
          reject(call.signal.reason);
        });
      }),
    // A call that ignores its signal.
    confirmPayment: () => new Promise(() => {}),
  });
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  const polite = client.getPayment({}).catch((error: unknown) => error);
  client.confirmPayment({}).catch(() => {});
  await until(() => started.calls.length === 2);
  let isDrained = false;
  const drained = started.server.drain().then(() => {
    isDrained = true;
  });
  started.server.endCalls(new GatewayError("UNAVAILABLE", "the gateway is shutting down"));
  assert.match(String(await polite), /\[unavailable\] the gateway is shutting down/);
  assert.equal(isDrained, false, "one call is left");
  started.server.close();
  await drained;
  assert.equal((reasons[0] as { code: string }).code, "UNAVAILABLE");
});

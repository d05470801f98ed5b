import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import net from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import tls from "node:tls";
import { createClient } from "@connectrpc/connect";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { defaultConnectionLimits } from "../../src/net/connection-limits.ts";
import { Body } from "../../src/net/intake.ts";
import { createOnePort } from "../../src/net/one-port.ts";
import { connected } from "../ask.ts";
import {
  callHeaders,
  errorCode,
  flag,
  frame,
  frameType,
  type H2Peer,
  h2Peer,
  uint32,
} from "../hardening/h2-peer.ts";
import { listen } from "../listen.ts";
import {
  answers,
  caller,
  getPaymentPath,
  held,
  http2Call,
  knownJson,
  type Started,
  start,
  testTls,
} from "../rpc/start.ts";
import { until } from "../until.ts";
import { openIntake } from "./open-intake.ts";

const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/** Asserts that the server still answers over HTTP/1.1 and HTTP/2. */
async function assertAlive(started: Started): Promise<void> {
  for (const httpVersion of ["1.1", "2"] as const) {
    const client = createClient(PaymentService, started.transport("connect", httpVersion));
    assert.equal((await client.getPayment({})).cursor, "c1");
  }
}

function post(body: string, headers = ""): string {
  return `POST ${getPaymentPath} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n${headers}Content-Length: ${body.length}\r\n\r\n${body}`;
}

test("ALPN picks HTTP/2 when the client offers it", async () => {
  await using started = await start(answers, { tls: true });
  for (const [offered, chosen] of [
    [["h2", "http/1.1"], "h2"],
    [["http/1.1"], "http/1.1"],
  ] as const) {
    const socket = tls.connect({
      port: started.port,
      host: "127.0.0.1",
      ca: testTls.cert,
      ALPNProtocols: [...offered],
    });
    await once(socket, "secureConnect");
    assert.equal(socket.alpnProtocol, chosen);
    socket.destroy();
  }
});

test("a body that comes with its headers is taken without a wait", async (t) => {
  const receive = t.mock.method(Body.prototype, "receive");
  await using started = await start(answers);
  const socket = await connected(t, started.port);
  socket.write(post("{}") + post("{}", "Connection: close\r\n"));
  assert.match(await text(socket), /(HTTP\/1\.1 200 OK\r\n(.*\r\n)*\r\n\{"cursor":"c1"\}){2}$/);
  assert.equal(receive.mock.callCount(), 0);
});

test("bytes may arrive one by one, HTTP/2 preface and HTTP/1.1 request alike", async (t) => {
  await using started = await start(answers);
  const slow = await connected(t, started.port);
  slow.setNoDelay(true);
  for (const byte of post("{}", "Connection: close\r\n")) {
    await new Promise((resolve) => slow.write(byte, resolve));
  }
  assert.match(await text(slow), /^HTTP\/1\.1 200 OK\r\n(.*\r\n)*\r\n\{"cursor":"c1"\}$/);

  const target = await connected(t, started.port);
  const between = net.createServer({ noDelay: true }, (socket) => {
    socket.on("data", async (chunk: Buffer) => {
      for (const byte of chunk) target.write(Uint8Array.of(byte));
    });
    target.pipe(socket);
  });
  const betweenPort = await listen(between);
  const session = http2.connect(`http://127.0.0.1:${betweenPort}`);
  assert.equal(await text(session.request(http2Call()).end("{}")), knownJson);
  session.destroy();
  target.destroy();
  between.close();
});

test("garbage, an empty connection, and a preface that breaks off do no harm", async (t) => {
  await using started = await start(answers);
  const openings = [
    "\0\x01\x02 garbage\r\n\r\n",
    "",
    preface.slice(0, 10),
    `${preface}garbage`.repeat(3),
    `${preface.slice(0, 14)}x\r\n\r\n`,
    "GET",
    "POST / HTTP/1.1\r\nHost: x\r\n: \r\n\r\n",
  ];
  for (const opening of openings) {
    const socket = await connected(t, started.port);
    socket.resume();
    socket.end(opening);
    await once(socket, "close");
    const reset = await connected(t, started.port);
    reset.write(opening);
    reset.resetAndDestroy();
    await once(reset, "close");
  }
  await assertAlive(started);
});

test("an upload that breaks off reaches no method, also behind a whole message", async (t) => {
  await using started = await start(answers);
  const upload = await connected(t, started.port);
  upload.write(post("{} ").slice(0, -1));
  await assertAlive(started);
  upload.resetAndDestroy();
  await assertAlive(started);
  assert.equal(started.calls.length, 4, "those of assertAlive");
});

test("an HTTP/2 request whose client leaves before its call begins reaches no method", async (t) => {
  const reset = (code: number) => (peer: H2Peer) => {
    peer.send(frame(frameType.rstStream, 0, 1, uint32(code)));
    peer.send(frame(frameType.ping, 0, 0, Buffer.alloc(8)));
    return peer.received(({ type }) => type === frameType.ping);
  };
  const goaway = frame(frameType.goaway, 0, 0, Buffer.alloc(8));
  const ways: Record<string, (peer: H2Peer) => Promise<unknown>> = {
    "reset without an error": reset(0),
    cancelled: reset(errorCode.cancel),
    "its connection ends": ({ socket }) => once(socket.end(), "close"),
    "GOAWAY, and its connection ends": ({ socket }) => once(socket.end(goaway), "close"),
  };
  // Without a length: each part of it is a message, too.
  const headers = callHeaders(getPaymentPath, { "content-type": "application/proto" });
  for (const [name, leave] of Object.entries(ways)) {
    for (const flags of [0, flag.endStream]) {
      for (const isSlow of flags === 0 ? [false, true] : [true]) {
        const began = Promise.withResolvers<void>();
        const left = Promise.withResolvers<void>();
        await using started = await start(answers, {
          identify: async () => {
            began.resolve();
            if (isSlow) await left.promise;
            return caller;
          },
        });
        const peer = await h2Peer(started.port);
        t.after(() => peer.socket.destroy());
        peer.send(frame(frameType.headers, flag.endHeaders, 1, headers));
        peer.send(frame(frameType.data, flags, 1, Uint8Array.of(0x0a, 1, 0x78)));
        await began.promise;
        await leave(peer);
        left.resolve();
        await started.logged(({ code }) => code !== undefined);
        assert.deepEqual(
          [started.calls, started.records[0]?.code],
          [[], "CANCELLED"],
          `${name}, ${flags === 0 ? "half a" : "a whole"} request, ${isSlow ? "slow" : "quick"}`,
        );
      }
    }
  }
});

test("a connection that stays silent, or stops within the preface, is cut", async (t) => {
  await using started = await start(answers, { limits: { sniffTimeoutMs: 50 } });
  for (const opening of ["", "PRI * HTTP/2.0"]) {
    const socket = await connected(t, started.port);
    socket.write(opening);
    socket.resume();
    await once(socket, "close");
  }
});

test("an HTTP/1.1 request whose headers or body stall is cut", async (t) => {
  const limits = { headersTimeoutMs: 50, requestTimeoutMs: 100 };
  await using started = await start(answers, { limits });
  for (const stalled of ["POST / HTTP/1.1\r\nHost: x\r\nX-A: ", post("{}").slice(0, -1)]) {
    const socket = await connected(t, started.port);
    socket.write(stalled);
    assert.match(await text(socket), /^HTTP\/1\.1 408 /);
  }
});

test("an HTTP/2 request whose body stalls is cut, and its session goes on", async () => {
  await using started = await start(answers, { limits: { requestTimeoutMs: 300 } });
  const session = http2.connect(started.url);
  const stalled = session.request(http2Call());
  stalled.on("error", () => {});
  stalled.write("{");
  await once(stalled, "close");
  assert.equal(stalled.rstCode, http2.constants.NGHTTP2_CANCEL);
  assert.equal(await text(session.request(http2Call()).end("{}")), knownJson);
  session.destroy();
  assert.equal(started.calls.length, 1);
});

test("an HTTP/2 session without a call is closed after the idle time-out, one with a call is not", async () => {
  const { core, release } = held();
  await using started = await start(core, { limits: { idleTimeoutMs: 600 } });
  const busy = http2.connect(started.url);
  const stream = busy.request(http2Call()).end("{}");
  await until(() => started.calls.length === 1);
  const idle = http2.connect(started.url);
  await once(idle, "close");
  release();
  assert.equal(await text(stream), knownJson);
  await once(busy, "close");
});

test("white space around a header's value is no part of it, over HTTP/1.1 and HTTP/2", async (t) => {
  await using started = await start(answers);
  const padded = { "idempotency-key": " k1 ", "x-request-id": "\tr1\t" };
  const socket = await connected(t, started.port);
  const fields = Object.entries(padded).map(([name, value]) => `${name}:${value}\r\n`);
  socket.write(post("{}", `Connection: close\r\n${fields.join("")}`));
  assert.match(await text(socket), /^HTTP\/1\.1 200 OK\r\n/);
  const session = http2.connect(started.url);
  assert.equal(await text(session.request(http2Call("GetPayment", padded)).end("{}")), knownJson);
  session.destroy();
  for (const { call } of started.calls) {
    assert.deepEqual([call.idempotencyKey, call.requestId], ["k1", "r1"]);
  }
  assert.equal(started.calls.length, 2);
});

test("a request with an invalid or a missing host is refused", async (t) => {
  await using started = await start(answers);
  const socket = await connected(t, started.port);
  socket.write(post("{}", "Connection: close\r\n").replace("Host: x", "Host: ["));
  assert.match(await text(socket), /^HTTP\/1\.1 400 /);
  const old = await connected(t, started.port);
  old.write(post("{}").replace("HTTP/1.1", "HTTP/1.0").replace("Host: x\r\n", ""));
  assert.match(await text(old), /^HTTP\/1\.1 400 /);
  await assertAlive(started);
});

test("a port that is taken is an error and does not end the process", async () => {
  await using started = await start(answers);
  const second = createOnePort({
    ...{ listener() {}, limits: defaultConnectionLimits, intake: openIntake() },
  });
  second.acceptor.listen(started.port, "127.0.0.1");
  await assert.rejects(once(second.acceptor, "listening"), { code: "EADDRINUSE" });
  second.destroy();
});

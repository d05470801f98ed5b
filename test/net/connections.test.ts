import assert from "node:assert/strict";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import type { Socket } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { ErrorInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { limitConnections } from "../../src/net/connections.ts";
import { ask } from "../ask.ts";
import {
  callHeaders,
  type Frame,
  flag,
  frame,
  frameType,
  h2Peer,
  settingId,
  settings,
} from "../hardening/h2-peer.ts";
import { listen } from "../listen.ts";
import {
  answers,
  failure,
  getPaymentPath,
  grpcJsClient,
  held,
  http2Call,
  knownJson,
  start,
  wires,
} from "../rpc/start.ts";
import { until } from "../until.ts";

const json = { "content-type": "application/json" };
const young = { maxConnectionAgeMs: 50 };

/** A watch like the core's: it fails with the reason of its signal, and with the cursor. */
async function* watchPayment(_request: unknown, { signal }: Call): AsyncGenerator<Event> {
  yield create(EventSchema, { cursor: "c1" });
  if (!signal.aborted) await once(signal, "abort");
  const { code, message, details } = signal.reason as GatewayError;
  throw new GatewayError(code, message, { ...details, resumeCursor: "c1" });
}

/** The frames of a call of `watchPayment`. */
function watchBy(streamId: number): Buffer {
  const headers = callHeaders("/payments.v1.PaymentService/WatchPayment", {
    "content-type": "application/grpc",
  });
  return Buffer.concat([
    frame(frameType.headers, flag.endHeaders, streamId, headers),
    frame(frameType.data, flag.endStream, streamId, Buffer.alloc(5)),
  ]);
}

test("an old HTTP/2 connection takes no new calls, and calls in progress finish", async () => {
  const { core, release } = held();
  await using ageless = await start(answers);
  await using aging = await start(core, { limits: { ...young, connectionAgeGraceMs: 10 } });
  const stays = http2.connect(ageless.url);
  await once(stays, "remoteSettings");

  const session = http2.connect(aging.url);
  const goaway = once(session, "goaway");
  const stream = session.request(http2Call()).end("{}");
  await until(() => aging.calls.length === 1);
  assert.equal((await goaway)[0], http2.constants.NGHTTP2_NO_ERROR);
  // The grace limits only streams. It is over when a connection opened after its start has aged.
  await once(http2.connect(aging.url), "close");
  await once(http2.connect(aging.url), "close");
  const closed = once(session, "close");
  release();
  assert.equal(await text(stream), knownJson);
  await closed;
  assert.equal(stays.closed, false);
  stays.destroy();
});

for (const { protocol, httpVersion, name } of wires) {
  test(`an old connection's streams end with their resume cursor, by ${name}`, async () => {
    await using started = await start(
      { watchPayment },
      // The connection is cut after `maxUnaryTimeoutMs`, so a stream that goes on does not hang.
      { limits: { ...young, connectionAgeGraceMs: 20, maxUnaryTimeoutMs: 5_000 } },
    );
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const events = client.watchPayment({})[Symbol.asyncIterator]();
    assert.equal((await events.next()).value?.event?.cursor, "c1");
    const error = await failure(events.next());
    const [{ reason, metadata } = assert.fail()] = error.findDetails(ErrorInfoSchema);
    const told = [error.code, reason, metadata.resume_cursor];
    assert.deepEqual(told, [Code.Unavailable, "CONNECTION_AGE", "c1"]);
  });
}

test("a watch of health on an old connection ends, to go on at another", async () => {
  const limits = { ...young, connectionAgeGraceMs: 20, maxUnaryTimeoutMs: 5_000 };
  await using started = await start({}, { limits });
  const client = createClient(Health, started.transport("grpc", "2"));
  const watch = client.watch({})[Symbol.asyncIterator]();
  await watch.next();
  const [info] = (await failure(watch.next())).findDetails(ErrorInfoSchema);
  assert.equal(info?.reason, "CONNECTION_AGE");
});

test("an old HTTP/1.1 connection closes with its next response", async () => {
  await using started = await start(answers, { limits: young });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const call = async () => {
    const { socket, headers, text } = await ask(started.url + getPaymentPath, {
      ...{ agent, method: "POST", headers: json, body: "{}" },
    });
    assert.equal(text, knownJson);
    return { socket, connection: headers.connection };
  };
  const sockets = new Set<Socket>();
  for (;;) {
    const { socket, connection } = await call();
    sockets.add(socket);
    if (connection === "close") break;
    assert.equal(connection, "keep-alive");
  }
  assert.equal(sockets.size, 1);
  const next = await call();
  assert.equal(next.connection, "keep-alive");
  assert.ok(!sockets.has(next.socket));
  agent.destroy();
});

test("an old connection with a call that does not end is cut", async () => {
  const limits = { maxConnectionAgeMs: 20, connectionAgeGraceMs: 1, maxUnaryTimeoutMs: 20 };
  // This method ignores its signal, so its call never ends.
  await using started = await start({ getPayment: () => new Promise(() => {}) }, { limits });
  const session = http2.connect(started.url);
  session.on("error", () => {});
  session
    .request(http2Call())
    .on("error", () => {})
    .end("{}");
  await once(session, "close");
});

test("grpc-js sends calls without a break over aging connections, and none fails", async () => {
  await using started = await start(answers, { limits: { maxConnectionAgeMs: 300 } });
  const client = grpcJsClient(PaymentService, started.port);
  let connections = 0;
  const count = (message: unknown) => {
    const { socket } = message as { socket: Socket };
    if (socket.localPort === started.port) connections++;
  };
  subscribe("net.server.socket", count);
  const failures: Error[] = [];
  const worker = async () => {
    while (connections < 8) {
      await new Promise<void>((resolve) => {
        client.getPayment({ externalId: "order" }, (error) => {
          if (error) failures.push(error);
          resolve();
        });
      });
    }
  };
  await Promise.all(Array.from({ length: 10 }, worker));
  unsubscribe("net.server.socket", count);
  assert.deepEqual(failures, []);
  client.close();
});

const quick = { keepAliveIntervalMs: 20, keepAliveTimeoutMs: 50 };
/** For peers that answer: on a busy machine they may be late. */
const patient = { ...quick, keepAliveTimeoutMs: 1_000 };
/** How long a peer has to stay: then it would have been cut, had its answers not counted. */
const staysMs = 1.5 * patient.keepAliveTimeoutMs;

test("a peer that answers no PING is cut, and stays if the gateway sends none", async () => {
  await using asked = await start(answers, { limits: quick });
  await using unasked = await start(answers, { limits: { ...quick, keepAliveIntervalMs: 0 } });
  const left = await h2Peer(unasked.port, { mute: true });
  await (await h2Peer(asked.port, { mute: true })).closed;
  assert.equal(left.isClosed, false);
  left.socket.destroy();
});

test("a peer that answers PINGs stays connected without a call", async () => {
  await using started = await start(answers, { limits: patient });
  const session = http2.connect(started.url);
  const sinceMs = performance.now();
  await new Promise<void>((resolve, reject) => {
    session.on("close", () => reject(new Error("it was cut")));
    session.on("ping", () => performance.now() - sinceMs > staysMs && resolve());
  });
  assert.equal(await text(session.request(http2Call()).end("{}")), knownJson);
  session.destroy();
});

const goaway = frame(frameType.goaway, 0, 0, Buffer.alloc(8));
for (const [what, behind, options] of [
  ["vanishes", Buffer.alloc(0), { mute: true }],
  ["breaks the protocol, and leaves", frame(frameType.settings, 0, 0, Buffer.alloc(8)), {}],
] as const) {
  for (const limits of [quick, { ...quick, keepAliveIntervalMs: 0, idleTimeoutMs: 50 }]) {
    const often = limits.keepAliveIntervalMs === 0 ? "without PINGs" : "with PINGs";
    test(`a peer that sends GOAWAY and then ${what} is cut, and its watch ends, ${often}`, async () => {
      await using started = await start({ watchPayment }, { limits });
      const peer = await h2Peer(started.port, options);
      peer.send(watchBy(1), goaway, behind);
      await until(() => started.calls.length === 1);
      if (behind.length > 0) peer.socket.destroy();
      await peer.closed;
      assert.equal((await started.logged(() => true)).code, "CANCELLED");
    });
  }
}

test("a peer that sends GOAWAY and stays keeps its watch", async () => {
  await using started = await start({ watchPayment }, { limits: patient });
  const peer = await h2Peer(started.port);
  peer.send(watchBy(1), goaway);
  const sinceMs = performance.now();
  const isAsked = ({ type, flags }: Frame) => type === frameType.settings && flags === 0;
  await until(() => peer.isClosed || performance.now() - sinceMs > staysMs);
  assert.ok(peer.frames.filter(isAsked).length >= 2, "it is asked once more");
  assert.equal(peer.isClosed, false);
  assert.equal(started.calls[0]?.call.signal.aborted, false);
  peer.socket.destroy();
});

test("a peer that reads and answers nothing is cut, and its watch ends in the core", async () => {
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
  const settled = settings([settingId.initialWindowSize, 1_000_000]);
  const peer = await h2Peer(started.port, { settings: settled });
  peer.socket.pause();
  peer.send(watchBy(1));
  await ended.promise;
  peer.socket.destroy();
});

test("a connection that the system cannot accept is counted, and ends no process", async (t) => {
  const cuts: string[] = [];
  const server = http.createServer();
  limitConnections(
    server,
    {},
    (cut) => cuts.push(cut),
    () => {},
  );
  t.after(() => server.close());
  await listen(server);
  server.emit("error", Object.assign(new Error("accept EMFILE"), { code: "EMFILE" }));
  assert.deepEqual(cuts, ["not_accepted"]);
});

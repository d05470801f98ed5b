import assert from "node:assert/strict";
import http2 from "node:http2";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import type { Core } from "../../src/core/core.ts";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import type { GetPaymentResponse } from "../../src/gen/payments/v1/payment_service_pb.ts";
import type { RpcLimits } from "../../src/rpc/methods.ts";
import { openStreamsPerConnection } from "../../src/rpc/request-listener.ts";
import { openIntake } from "../net/open-intake.ts";
import { answers, getPaymentPath, held, http2Call, start } from "../rpc/start.ts";
import { until } from "../until.ts";
import { recordCuts } from "./cuts.ts";
import {
  callHeaders,
  errorCode,
  type Frame,
  flag,
  frame,
  frameType,
  type H2Peer,
  h2Peer,
  headerBlock,
  settingId,
  settings,
  uint32,
} from "./h2-peer.ts";

const call = callHeaders(getPaymentPath);

/** An answer that is larger than the default flow-control window. */
const large = { cursor: "c".repeat(200_000) } as GetPaymentResponse;

interface RigOptions {
  readonly core?: Partial<Core>;
  readonly maxBytes?: number;
  readonly peer?: Parameters<typeof h2Peer>[1];
}

/** The RPC edge with these limits, and a peer that is connected to it. */
async function rig(
  t: TestContext,
  limits: Partial<RpcLimits> = {},
  { core = answers, maxBytes = 100_000_000, ...options }: RigOptions = {},
) {
  const cuts = recordCuts();
  const intake = openIntake(maxBytes);
  const rpc = await start(core, { limits, intake, report: cuts.report });
  t.after(() => rpc[Symbol.asyncDispose]());
  const connect = async (how = options.peer) => {
    const peer = await h2Peer(rpc.port, how);
    t.after(() => peer.socket.destroy());
    return peer;
  };
  return { ...cuts, rpc, connect, peer: await connect() };
}

/** The frames of a whole call. */
const wholeCall = (streamId: number, headers = call, body = Buffer.from("{}")) =>
  Buffer.concat([
    frame(frameType.headers, flag.endHeaders, streamId, headers),
    frame(frameType.data, flag.endStream, streamId, body),
  ]);

/** Makes a call on the peer's connection, and resolves when it is answered. */
async function answered(peer: H2Peer, streamId: number): Promise<void> {
  peer.send(wholeCall(streamId));
  await peer.received(
    (got) => got.streamId === streamId && got.type === frameType.data && got.payload.length > 0,
  );
}

/** Asserts that other callers' connections are still served. */
async function neighboursServed({ rpc }: Awaited<ReturnType<typeof rig>>): Promise<void> {
  const session = http2.connect(rpc.url);
  assert.match(await text(session.request(http2Call()).end("{}")), /cursor/);
  await new Promise<void>((resolve) => session.close(() => resolve()));
}

const times = (n: number, make: (i: number) => Buffer) =>
  Buffer.concat(Array.from({ length: n }, (_, i) => make(i)));
const unlimited = { burst: 1e9, perSecond: 1e9 };
const reset = (i: number) =>
  Buffer.concat([
    frame(frameType.headers, flag.endHeaders, 2 * i + 1, call),
    frame(frameType.rstStream, 0, 2 * i + 1, uint32(errorCode.cancel)),
  ]);

/** Floods of frames, each with the limit that cuts it and the reason that is reported. */
const floods = {
  PING: {
    flood: () => frame(frameType.ping, 0, 0, Buffer.alloc(8)),
    limit: "pings",
    cut: "ping_flood",
  },
  SETTINGS: {
    flood: () => frame(frameType.settings, 0, 0),
    limit: "settings",
    cut: "settings_flood",
  },
  "rapid resets": { flood: reset, limit: "resets", cut: "protocol" },
} as const;

for (const [name, { flood, limit, cut }] of Object.entries(floods)) {
  test(`a flood of ${name} cuts its connection and no other`, async (t) => {
    const attacked = await rig(t, { [limit]: { burst: 20, perSecond: 1 } });
    const { peer } = attacked;
    peer.send(times(200, flood));
    await peer.closed;
    await attacked.cut(cut);
    await neighboursServed(attacked);
  });

  test(`control: without the limit, the same flood of ${name} is not cut`, async (t) => {
    const attacked = await rig(t, { [limit]: unlimited });
    const { peer } = attacked;
    peer.send(times(200, flood));
    await answered(peer, 1001);
    assert.deepEqual(attacked.cuts, []);
  });
}

test("nghttp2 cuts a peer that does not read the answers to its PINGs or SETTINGS", async (t) => {
  for (const flood of [floods.PING.flood, floods.SETTINGS.flood]) {
    const limits = { pings: unlimited, settings: unlimited, lingerMs: 200 };
    const attacked = await rig(t, limits, { peer: { mute: true } });
    const { peer } = attacked;
    peer.socket.pause();
    while (!attacked.cuts.includes("protocol")) {
      peer.send(times(20_000, flood));
      await new Promise((resolve) => setTimeout(resolve, 10));
      if (peer.socket.destroyed) break;
    }
    peer.socket.resume();
    await peer.closed;
    await neighboursServed(attacked);
  }
});

test("a ninth CONTINUATION of the same headers cuts the connection", async (t) => {
  const attacked = await rig(t);
  const continued = (n: number, streamId: number) => [
    frame(frameType.headers, flag.endStream, streamId, call),
    ...Array.from({ length: n }, (_, i) =>
      frame(
        frameType.continuation,
        i === n - 1 ? flag.endHeaders : 0,
        streamId,
        headerBlock({ [`x-${i}`]: "y" }),
      ),
    ),
  ];
  const { peer } = attacked;
  peer.send(...continued(8, 1));
  await peer.received((got) => got.streamId === 1 && got.type === frameType.headers);
  peer.send(...continued(9, 3));
  await peer.closed;
  await attacked.cut("protocol");
  assert.ok(attacked.rpc.calls.length <= 1);
});

test("headers beyond 16 KiB reset their call and leave the connection open", async (t) => {
  const long = callHeaders(getPaymentPath, {
    "x-long": "x".repeat(14_000),
    "x-more": "y".repeat(4_000),
  });
  const send = async (peer: H2Peer) => {
    // The limit applies once the client has acknowledged it; until then Node's 64 KiB apply.
    await answered(peer, 1);
    peer.send(
      frame(frameType.headers, 0, 3, long.subarray(0, 16_000)),
      frame(frameType.continuation, flag.endHeaders, 3, long.subarray(16_000)),
      frame(frameType.data, flag.endStream, 3, Buffer.from("{}")),
    );
  };
  const attacked = await rig(t);
  const { peer } = attacked;
  await send(peer);
  await peer.received((got) => got.type === frameType.rstStream && got.streamId === 3);
  await answered(peer, 5);
  assert.equal(attacked.rpc.calls.length, 2);

  const control = await rig(t, { maxHeaderBytes: 64 * 1024 });
  const { peer: allowed } = control;
  await send(allowed);
  await allowed.received((got) => got.type === frameType.data && got.streamId === 3);
});

test("streams beyond the limit are refused, and a peer that keeps opening them is cut", async (t) => {
  const { core: never } = held();
  const open = (peer: H2Peer, from: number, n: number) =>
    peer.send(times(n, (i) => wholeCall(from + 2 * i)));
  const limits = { initialConcurrentStreams: 10, maxConcurrentStreams: 10 };
  const attacked = await rig(t, limits, { core: never });
  // A proxy that has not received the limit yet may open more: they are refused without a cut.
  const hasty = await attacked.connect({ mute: true });
  open(hasty, 1, 200);
  await hasty.received(
    ({ type, payload }) =>
      type === frameType.rstStream && payload.readUInt32BE() === errorCode.refusedStream,
  );
  hasty.send(frame(frameType.ping, 0, 0, Buffer.from("12345678")));
  await hasty.received((got) => got.type === frameType.ping && got.flags === flag.ack);
  assert.equal(hasty.isClosed, false);
  const { peer } = attacked;
  await peer.received((got) => got.type === frameType.settings);
  open(peer, 1, 2_000);
  await peer.closed;
  const neighbour = await attacked.connect();
  await neighbour.received((got) => got.type === frameType.settings);

  const control = await rig(t, { maxConcurrentStreams: 1000 }, { core: never });
  const { peer: allowed } = control;
  open(allowed, 1, 200);
  allowed.send(frame(frameType.ping, 0, 0, Buffer.from("12345678")));
  await allowed.received((got) => got.type === frameType.ping && got.flags === flag.ack);
  assert.equal(allowed.isClosed, false);
});

test("more than 128 header fields reset their call, although each takes one byte", async (t) => {
  const attacked = await rig(t);
  const { peer } = attacked;
  // A literal that enters the table (RFC 7541, section 6.2.1), then references to it.
  const added = Buffer.from("\x40\x01x\x01y");
  const open = (streamId: number, fields: number) =>
    peer.send(wholeCall(streamId, Buffer.concat([call, added, Buffer.alloc(fields, 0x80 | 62)])));
  open(1, 122);
  await peer.received((got) => got.type === frameType.data && got.streamId === 1);
  open(3, 123);
  await peer.received((got) => got.type === frameType.rstStream && got.streamId === 3);
  await answered(peer, 5);
  assert.equal(attacked.rpc.calls.length, 2);
});

test("refusals make no room for further streams while the same bytes are read", async (t) => {
  // Five fit in what is read at once. A turn of the event loop reads many times.
  const unknown = callHeaders("/nobody", { "x-long": "x".repeat(13_000) });
  const batch = 40;
  const send = (peer: H2Peer, from: number) =>
    peer.send(
      times(batch, (i) =>
        frame(frameType.headers, flag.endHeaders | flag.endStream, 2 * (from + i) + 1, unknown),
      ),
    );
  const attacked = await rig(t, { initialConcurrentStreams: 10, maxConcurrentStreams: 10 });
  const { peer } = attacked;
  await answered(peer, 1);
  for (let from = 1; from < 50 * batch && !peer.isClosed; from += batch) {
    send(peer, from);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await attacked.cut("protocol");
  await neighboursServed(attacked);

  const control = await rig(t, { initialConcurrentStreams: 1_000 });
  const { peer: allowed } = control;
  await answered(allowed, 1);
  send(allowed, 1);
  await allowed.received(({ streamId }) => streamId === 2 * batch + 1);
  assert.deepEqual(control.cuts, []);
});

test("a connection has a limited number of open streams without credentials", async (t) => {
  const attacked = await rig(t);
  const watch = callHeaders("/grpc.health.v1.Health/Watch", { "content-type": "application/grpc" });
  const open = (peer: H2Peer, streamId: number) =>
    peer.send(wholeCall(streamId, watch, Buffer.alloc(5)));
  const { peer } = attacked;
  for (let i = 0; i <= openStreamsPerConnection; i++) open(peer, 2 * i + 1);
  const last = 2 * openStreamsPerConnection + 1;
  const refused = await peer.received(
    (got) => got.type === frameType.headers && got.streamId === last,
  );
  assert.ok(refused.flags & flag.endStream);
  assert.deepEqual(attacked.cuts, ["open_streams"]);
  // A stream that ends frees a slot, and other connections have their own limit.
  peer.send(frame(frameType.rstStream, 0, 1, uint32(errorCode.cancel)));
  open(peer, last + 2);
  await peer.received((got) => got.type === frameType.data && got.streamId === last + 2);
  const other = await attacked.connect();
  open(other, 1);
  await other.received((got) => got.type === frameType.data && got.streamId === 1);
});

/** Matches a SETTINGS frame that allows this many concurrent streams. */
function isAllowed(streams: number) {
  return ({ type, payload }: Frame) => {
    for (let at = 0; type === frameType.settings && at < payload.length; at += 6) {
      const isCount = payload.readUInt16BE(at) === settingId.maxConcurrentStreams;
      if (isCount && payload.readUInt32BE(at + 2) === streams) return true;
    }
    return false;
  };
}

test("streams that end well raise the stream limit of their connection", async (t) => {
  const limits = { initialConcurrentStreams: 10, maxConcurrentStreams: 25 };
  const { peer } = await rig(t, limits);
  await peer.received(isAllowed(10));
  for (let i = 0; i < 10; i++) await answered(peer, 2 * i + 1);
  await peer.received(isAllowed(20));
  for (let i = 10; i < 20; i++) await answered(peer, 2 * i + 1);
  await peer.received(isAllowed(25));
});

test("open streams raise the limit only if their request is complete and they are read", async (t) => {
  async function* watchPayment() {
    yield { cursor: "c1" } as Event;
    await new Promise(() => {});
  }
  const limits = { initialConcurrentStreams: 4, maxConcurrentStreams: 100, lingerMs: 50 };
  const { peer: read, connect } = await rig(t, limits, { core: { watchPayment } });
  const watch = callHeaders("/payments.v1.PaymentService/WatchPayment", {
    "content-type": "application/grpc+json",
  });
  const message = Buffer.concat([Buffer.from([0]), uint32(2), Buffer.from("{}")]);
  const open = (peer: H2Peer, last: number) => {
    for (let i = 0; i < 4; i++) {
      peer.send(
        frame(frameType.headers, flag.endHeaders, 2 * i + 1, watch),
        frame(frameType.data, last, 2 * i + 1, message),
      );
    }
  };
  const unread = await connect(closedWindow);
  const unfinished = await connect();
  open(unread, flag.endStream);
  open(unfinished, 0);
  open(read, flag.endStream);
  // Two more for each of the four, or of as many as were open for long enough at the first look.
  const isRaised = (one: Frame) => [8, 10, 12].some((limit) => isAllowed(limit)(one));
  await read.received(isRaised);
  assert.ok(!unread.frames.some(isRaised));
  assert.ok(!unfinished.frames.some(isRaised));
});

test("a connection may reset more calls the more streams it is allowed", async (t) => {
  const attacked = await rig(t, { initialConcurrentStreams: 20, maxConcurrentStreams: 1_000 });
  const { peer } = attacked;
  peer.send(times(200, reset));
  await peer.closed;
  await attacked.cut("reset_flood");
  await neighboursServed(attacked);

  const control = await rig(t, { initialConcurrentStreams: 1_000 });
  const { peer: allowed } = control;
  allowed.send(times(200, reset));
  await answered(allowed, 1001);
  assert.deepEqual(control.cuts, []);
});

const closedWindow = { settings: settings([settingId.initialWindowSize, 0]) };
const unreadable = { core: { getPayment: async () => large }, peer: closedWindow };

test("an answer whose window never opens is cut, and delays no other caller", async (t) => {
  const isCut = (got: { type: number; payload: Buffer }) =>
    got.type === frameType.rstStream && got.payload.readUInt32BE() === errorCode.cancel;

  const control = await rig(t, { unreadTimeoutMs: 60_000 }, unreadable);
  const { peer: patient } = control;
  patient.send(wholeCall(1));
  await patient.received((got) => got.type === frameType.headers);
  const { peer, ...attacked } = await rig(t, { unreadTimeoutMs: 1_000 }, unreadable);
  peer.send(wholeCall(1));
  await peer.received(isCut);
  assert.deepEqual(attacked.cuts, ["unread_answer"]);
  await neighboursServed({ peer, ...attacked });

  assert.deepEqual(control.cuts, []);
  patient.send(frame(frameType.windowUpdate, 0, 1, uint32(1_000_000)));
  await patient.received((got) => got.type === frameType.data && got.payload.length > 1_000);
});

test("an unread answer is cut also if its call took longer than the timeout", async (t) => {
  const { core, release } = held(large);
  const attacked = await rig(t, { unreadTimeoutMs: 50 }, { core, peer: closedWindow });
  attacked.peer.send(wholeCall(1));
  // Longer than `unreadTimeoutMs`, which does not apply before there is an answer.
  await new Promise((resolve) => setTimeout(resolve, 150));
  assert.deepEqual(attacked.cuts, []);
  release();
  await attacked.cut("unread_answer");
});

test("the total size of unread answers is limited", async (t) => {
  const attacked = await rig(t, {}, { ...unreadable, maxBytes: 1_200_000 });
  const more = Array.from({ length: 9 }, () => attacked.connect());
  const peers = [attacked.peer, ...(await Promise.all(more))];
  for (const peer of peers) peer.send(wholeCall(1));
  const cut = () => attacked.cuts.filter((reason) => reason === "unread_memory").length;
  await until(() => cut() >= 5);
  // 10 answers of 200 kB, of which 5 leave an eighth of the budget free.
  assert.equal(cut(), 5);
  await neighboursServed(attacked);
});

test("a connection that its client keeps open after the server ended it is cut", async (t) => {
  const limits = { idleTimeoutMs: 50, lingerMs: 100 };
  const { peer, ...attacked } = await rig(t, limits, { peer: { allowHalfOpen: true } });
  await peer.received((got) => got.type === frameType.goaway);
  await attacked.cut("lingering");
  await new Promise<void>((resolve) => peer.socket.end(resolve));
  await peer.closed;

  // Control: a client that ends its side too is not cut.
  const polite = await rig(t, { idleTimeoutMs: 50, lingerMs: 10_000 });
  await polite.peer.closed;
  assert.deepEqual(polite.cuts, []);
});

test("a connection beyond the limit is closed, and so are idle ones to make room", async (t) => {
  const attacked = await rig(t, { maxConnections: 5 });
  const more = Array.from({ length: 4 }, () => attacked.connect());
  const idle = [attacked.peer, ...(await Promise.all(more))];
  await Promise.all(idle.map((peer) => peer.received((got) => got.type === frameType.settings)));
  await (await attacked.connect()).closed;
  assert.equal(attacked.cuts[0], "connections");
  await Promise.all(idle.map((peer) => peer.closed));
  await neighboursServed(attacked);
});

test("maxConnectionsPerAddress limits the connections of one address", async (t) => {
  const attacked = await rig(t, { maxConnectionsPerAddress: 2 });
  const second = await attacked.connect();
  await answered(attacked.peer, 1);
  await (await attacked.connect()).closed;
  assert.deepEqual(attacked.cuts, ["connections_of_address"]);
  await answered(second, 1);
  second.socket.destroy();
  await second.closed;
  for (;;) {
    const served = answered(await attacked.connect(), 1);
    if (await served.then(() => true).catch(() => false)) break;
  }
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { type TestContext, test } from "node:test";
import WebSocket from "ws";
import { limits } from "../../src/graphql/limits.ts";
import { socketLimits } from "../../src/graphql/transport/socket-flow.ts";
import { type Served, serve } from "../graphql/serve.ts";
import { rawSocket } from "../graphql/socket.ts";
import { openIntake } from "../net/open-intake.ts";
import { until } from "../until.ts";
import { recordCuts } from "./cuts.ts";

type Rig = Awaited<ReturnType<typeof rig>>;

async function rig(t: TestContext, options: Parameters<typeof serve>[2] = {}) {
  const cuts = recordCuts();
  const served = await serve(t, {}, { report: cuts.report, ...options });
  return { ...cuts, served };
}

type Peer = Awaited<ReturnType<typeof rawSocket>>;

const budget = "{ rateLimit { limit } }";

/** Asserts that another caller is still served. */
async function neighboursServed(t: TestContext, attacked: Rig): Promise<void> {
  const { subscribe, message } = await rawSocket(t, attacked.served);
  subscribe(budget);
  assert.deepEqual((await message("next")).payload, { data: { rateLimit: { limit: 10 } } });
}

test("a socket that never sends connection_init is closed", async (t) => {
  const attacked = await rig(t);
  const { socket } = await rawSocket(t, attacked.served, { mute: true });
  const [code] = await once(socket, "close");
  assert.equal(code, 4408);
  await neighboursServed(t, attacked);
});

test("a socket is not closed for a connection_init that came while the process stood still", async (t) => {
  const attacked = await rig(t);
  const { socket, send, message } = await rawSocket(t, attacked.served, { mute: true });
  send({ type: "connection_init" });
  const sinceMs = performance.now();
  while (performance.now() - sinceMs < 3_200);
  const closed = once(socket, "close").then(([code]) => assert.fail(`closed with ${code}`));
  await Promise.race([message("connection_ack"), closed]);
  closed.catch(() => {});
});

/** Sends an upgrade that is refused, by default for its path; the client never closes its side. */
function refusedUpgrade(t: TestContext, { wsUrl }: Served, path = "/elsewhere"): Socket {
  const { hostname, port } = new URL(wsUrl);
  const client = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  t.after(() => client.destroy());
  const key = `sec-websocket-key: ${"x".repeat(22)}==`;
  const asked = ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13", key];
  const headers = [...asked, `host: ${hostname}`];
  client.on("error", () => {}).write(`GET ${path} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
  return client;
}

test("a client that resets a refused upgrade does not end the process", async (t) => {
  const attacked = await rig(t);
  const reset = (_: unknown, socket: Duplex) => socket.destroy(new Error("ECONNRESET"));
  attacked.served.server.prependOnceListener("upgrade", reset);
  await once(refusedUpgrade(t, attacked.served).resume(), "end");
  await neighboursServed(t, attacked);
});

test("a client cannot keep the connection of a refused upgrade", async (t) => {
  const attacked = await rig(t);
  const closed = once(attacked.served.server, "connection").then(([socket]) =>
    once(socket, "close"),
  );
  const client = refusedUpgrade(t, attacked.served);
  const [answer] = await once(client, "data");
  assert.match(String(answer), /^HTTP\/1.1 404 Not Found\r\n/);
  await closed;
});

test("an upgrade during a drain is refused", async (t) => {
  const attacked = await rig(t);
  await attacked.served.closeWebSockets();
  const [answer] = await once(refusedUpgrade(t, attacked.served, "/graphql"), "data");
  assert.match(String(answer), /^HTTP\/1.1 503 /);
});

test("a message beyond the size limit closes its socket before it is read completely", async (t) => {
  const attacked = await rig(t);
  const { socket, subscribe } = await rawSocket(t, attacked.served);
  subscribe(`${budget} #${"x".repeat(limits.messageBytes)}`);
  const [code] = await once(socket, "close");
  assert.equal(code, 1009);

  const allowed = await rawSocket(t, attacked.served);
  allowed.subscribe(`${budget} #${"x".repeat(limits.documentLength / 2)}`);
  await allowed.message("next");
});

test("until its caller is known, a socket may send less at once", async (t) => {
  const attacked = await rig(t);
  const { socket } = await rawSocket(t, attacked.served, { mute: true });
  const token = (length: number) =>
    JSON.stringify({ type: "connection_init", payload: { token: "x".repeat(length) } });
  socket.send(token(socketLimits.initBytes));
  const [code] = await once(socket, "close");
  assert.equal(code, 1009);

  const allowed = await rawSocket(t, attacked.served, { mute: true });
  allowed.socket.send(token(socketLimits.initBytes - 100));
  await allowed.message("connection_ack");
});

test("what arrives of messages counts against the memory of all clients", async (t) => {
  const attacked = await rig(t, { intake: openIntake(1_000_000) });
  const size = limits.messageBytes / 2;
  // Whole messages do not count: each is handled and freed.
  const control = await rawSocket(t, attacked.served);
  for (let i = 0; i < 4; i++) control.send({ type: "ping", payload: { x: "x".repeat(size) } });
  await until(() => control.messages.length === 4);
  assert.deepEqual(attacked.cuts, []);
  const peers = await Promise.all([1, 2].map(() => rawSocket(t, attacked.served)));
  for (const { socket } of peers) socket.send("x".repeat(size), { fin: false });
  await attacked.cut("unread_memory");
  await neighboursServed(t, attacked);
});

/** Each waits for the effect of its message: ws itself cuts pings with unread pongs (see below). */
const kinds = {
  async pings({ socket }: Peer) {
    socket.ping();
    await Promise.race([once(socket, "pong"), once(socket, "close")]);
  },
  async "pongs that nobody asked for"({ socket }: Peer) {
    socket.pong();
    await new Promise((resolve) => setImmediate(resolve));
  },
  async messages({ send }: Peer) {
    send({ type: "ping" });
    await new Promise((resolve) => setImmediate(resolve));
  },
} as const;

for (const [name, send] of Object.entries(kinds)) {
  test(`a flood of ${name} cuts its socket`, async (t) => {
    const attacked = await rig(t);
    const peer = await rawSocket(t, attacked.served);
    while (peer.socket.readyState === WebSocket.OPEN) await send(peer);
    assert.deepEqual(attacked.cuts, ["message_flood"]);
    await neighboursServed(t, attacked);
  });

  test(`control: ${name} within the limit do not cut their socket`, async (t) => {
    const attacked = await rig(t);
    const peer = await rawSocket(t, attacked.served);
    for (let i = 0; i < socketLimits.messages.burst - 10; i++) await send(peer);
    peer.subscribe(budget);
    await peer.message("next");
    assert.deepEqual(attacked.cuts, []);
  });
}

test("ws cuts a socket that does not read the pongs to its pings", async (t) => {
  const attacked = await rig(t);
  const { socket } = await rawSocket(t, attacked.served);
  socket.pause();
  for (let i = 0; i < socketLimits.messages.burst - 10; i++) socket.ping();
  socket.resume();
  await once(socket, "close");
  await neighboursServed(t, attacked);
});

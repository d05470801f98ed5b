import assert from "node:assert/strict";
import diagnostics from "node:diagnostics_channel";
import { once } from "node:events";
import type net from "node:net";
import { type TestContext, test } from "node:test";
import WebSocket from "ws";
import { GatewayError } from "../../../src/errors.ts";
import { PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { limits } from "../../../src/graphql/limits.ts";
import { recordCuts } from "../../hardening/cuts.ts";
import { openIntake } from "../../net/open-intake.ts";
import { valuesOf } from "../../values-of.ts";
import { createFeed, paymentEvent } from "../feed.ts";
import { type Served, serve } from "../serve.ts";
import { rawSocket } from "../socket.ts";

const watch = `subscription { paymentUpdated(externalId: "order-1") { cursor } }`;

test("a socket that does not answer pings is cut, one that does is not", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch }, { heartbeatMs: 1_000 });
  const living = await rawSocket(t, gateway);
  const dead = await rawSocket(t, gateway, { autoPong: false });
  dead.subscribe(watch);
  await feed.opened;
  await Promise.all([once(dead.socket, "close"), feed.released]);
  for (let pings = 0; pings < 3; pings++) await once(living.socket, "ping");
  assert.equal(living.socket.readyState, WebSocket.OPEN);
});

test("a socket is limited in its operations, and one that completes makes room for another", async (t) => {
  const feeds = new Map<string, ReturnType<typeof createFeed>>();
  const gateway = await serve(t, {
    watchPayment(request, call) {
      const feed = createFeed();
      feeds.set(request.externalId, feed);
      return feed.watch(request, call);
    },
  });
  const { send, subscribe, message } = await rawSocket(t, gateway);
  const watch = (id: string) =>
    subscribe(`subscription { paymentUpdated(externalId: "${id}") { cursor } }`, id);
  for (let i = 0; i <= limits.operationsPerSocket; i++) watch(`${i}`);
  const refused = await message("error");
  assert.equal(refused.id, `${limits.operationsPerSocket}`);
  assert.deepEqual(refused.payload[0].extensions, {
    code: "RATE_LIMITED",
    reason: "TOO_MANY_STREAMS",
  });
  send({ id: "0", type: "complete" });
  await feeds.get("0")?.released;
  watch("again");
  feeds.get("1")?.push(paymentEvent("c-1", PaymentStatus.PENDING));
  await message("next");
  await feeds.get("again")?.opened;
});

test("the gateway stops reading from a client that does not read, until it does", async (t) => {
  const accepted: net.Socket[] = [];
  const onSocket = (message: unknown) => accepted.push((message as { socket: net.Socket }).socket);
  diagnostics.subscribe("net.server.socket", onSocket);
  t.after(() => diagnostics.unsubscribe("net.server.socket", onSocket));
  const gateway = await serve(t);
  const { socket, messages, send } = await rawSocket(t, gateway);
  const [served] = accepted;
  assert.ok(served);
  socket.pause();
  const payload = { text: "x".repeat(256 * 1024) };
  const asked = 200;
  for (let i = 0; i < asked; i++) send({ type: "ping", payload });
  // Wait until no more bytes are read: the system's buffers are full in both directions.
  for (let same = 0, last = -1; same < 20; ) {
    await new Promise((resolve) => setTimeout(resolve, 10));
    same = last === served.bytesRead ? same + 1 : 0;
    last = served.bytesRead;
  }
  assert.ok(served.bytesRead < asked * payload.text.length, "it is not read to the end");
  assert.ok(served.writableLength < 4 * payload.text.length, `${served.writableLength} bytes wait`);
  assert.ok(socket.bufferedAmount > 0);
  socket.resume();
  while (messages.filter(({ type }) => type === "pong").length < asked) {
    await once(socket, "message");
  }
});

/** Requests many large responses, and reads none of them. */
async function askAndStall(t: TestContext, gateway: Served) {
  const { socket, messages, subscribe } = await rawSocket(t, gateway);
  socket.pause();
  const query = '{ payment(externalId: "order-1") { details { payload } } }';
  for (let i = 0; i < limits.operationsPerSocket; i++) subscribe(query, `${i}`);
  return { socket, messages };
}

/**
 * The responses of one socket, 100 of 256 KiB, far exceed the system's buffers; those of two
 * sockets also exceed the budget below.
 */
const payment = { details: { payload: "x".repeat(256 * 1024) } };
const getPayment = async () => ({ payment });

test("a client that does not read is cut, even if it sends unsolicited pongs", async (t) => {
  const { report, cut } = recordCuts();
  const gateway = await serve(t, { getPayment }, { heartbeatMs: 200, report });
  const { socket } = await askAndStall(t, gateway);
  const pongs = setInterval(() => socket.pong(), 20);
  t.after(() => clearInterval(pongs));
  await cut("unread_answer");
});

test("the client with the most unread bytes is cut when all together exceed the limit", async (t) => {
  const { report, cut, cuts } = recordCuts();
  const intake = openIntake(30 * 1024 * 1024);
  const gateway = await serve(t, { getPayment }, { report, intake });
  const reader = await rawSocket(t, gateway);
  const stalled = await Promise.all([askAndStall(t, gateway), askAndStall(t, gateway)]);
  await cut("unread_memory");
  reader.subscribe("{ rateLimit { limit } }");
  await reader.message("complete");
  // The rest is below the limit again, and is delivered completely once it is read.
  for (const { socket } of stalled) socket.resume();
  await Promise.race(
    stalled.map(async ({ socket, messages }) => {
      const isDone = () => messages.filter(({ type }) => type === "complete").length;
      while (isDone() < limits.operationsPerSocket) await once(socket, "message");
    }),
  );
  assert.deepEqual(cuts, ["unread_memory"]);
});

async function connect(t: TestContext, gateway: Served) {
  const client = await rawSocket(t, gateway);
  return { ...client, closed: once(client.socket, "close") as Promise<[code: number]> };
}

test("a drain closes an idle socket, and a busy one after its last message", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const idle = await connect(t, gateway);
  const busy = await connect(t, gateway);
  busy.subscribe(watch);
  await feed.opened;
  const drained = gateway.closeWebSockets({ spreadMs: 10, timeoutMs: 60_000 });
  assert.equal((await idle.closed)[0], 1012);
  assert.equal(busy.socket.readyState, WebSocket.OPEN);
  feed.fail(new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c7" }));
  assert.equal((await busy.closed)[0], 1012);
  await drained;
  assert.deepEqual(valuesOf(busy.messages, "type"), ["next", "complete"]);
  assert.deepEqual(busy.messages[0]?.payload?.errors?.[0]?.extensions, {
    code: "UPSTREAM_UNAVAILABLE",
    resumeCursor: "c7",
  });
});

test("a drain closes sockets whose operations do not end, and cuts clients that do not answer", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const endless = await connect(t, gateway);
  endless.subscribe(watch);
  await feed.opened;
  const deaf = await connect(t, gateway);
  // This client never reads the close frame.
  (deaf.socket as unknown as { _socket: { pause(): void } })._socket.pause();
  await gateway.closeWebSockets({ spreadMs: 0, timeoutMs: 50 });
  assert.equal((await endless.closed)[0], 1012);
  await feed.released;
});

import assert from "node:assert/strict";
import { on, once } from "node:events";
import { type TestContext, test } from "node:test";
import WebSocket from "ws";
import { limits } from "../../src/graphql/limits.ts";
import { socketLimits } from "../../src/graphql/transport/websocket-limits.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { type Answer, type Served, serve } from "../graphql/serve.ts";
import { type Cuts, recordCuts } from "./cuts.ts";

interface Rig extends Cuts {
  readonly served: Served;
}

async function rig(
  t: TestContext,
  methods?: Parameters<typeof serve>[1],
  options: Parameters<typeof serve>[2] = {},
): Promise<Rig> {
  const cuts = recordCuts();
  const served = await serve(t, methods, { report: cuts.report, ...options });
  return { ...cuts, served };
}

/** A socket and a reader of the messages that it receives. */
interface Peer {
  readonly socket: WebSocket;
  next(): Promise<Answer>;
}

async function connect(t: TestContext, { served }: Rig, init = true): Promise<Peer> {
  const socket = new WebSocket(served.wsUrl, "graphql-transport-ws");
  t.after(() => socket.terminate());
  socket.setMaxListeners(0);
  const incoming = on(socket, "message");
  socket.on("error", () => {});
  await once(socket, "open");
  const peer: Peer = {
    socket,
    async next() {
      const { value } = await incoming.next();
      return JSON.parse(String(value?.[0]));
    },
  };
  if (!init) return peer;
  socket.send('{"type":"connection_init"}');
  await peer.next();
  return peer;
}

function subscribe(id: string, query: string): string {
  return JSON.stringify({ id, type: "subscribe", payload: { query } });
}

const budget = "{ rateLimit { limit } }";

/** Asserts that another caller is still served. */
async function neighboursServed(t: TestContext, attacked: Rig): Promise<void> {
  const { socket, next } = await connect(t, attacked);
  socket.send(subscribe("1", budget));
  const answer = await next();
  assert.deepEqual(answer.payload, { data: { rateLimit: { limit: 10 } } });
}

test("a socket that never sends connection_init is closed", async (t) => {
  const attacked = await rig(t);
  const { socket } = await connect(t, attacked, false);
  const [code] = await once(socket, "close");
  assert.equal(code, 4408);
  await neighboursServed(t, attacked);
});

test("a message beyond the size limit closes its socket before it is read completely", async (t) => {
  const attacked = await rig(t);
  const { socket } = await connect(t, attacked);
  socket.send(subscribe("1", `${budget} #${"x".repeat(limits.messageBytes)}`));
  const [code] = await once(socket, "close");
  assert.equal(code, 1009);

  const allowed = await connect(t, attacked);
  allowed.socket.send(subscribe("1", `${budget} #${"x".repeat(limits.documentLength / 2)}`));
  const answer = await allowed.next();
  assert.equal(answer.type, "next");
});

test("until its caller is known, a socket may send less at once", async (t) => {
  const attacked = await rig(t);
  const { socket } = await connect(t, attacked, false);
  const token = (length: number) =>
    JSON.stringify({ type: "connection_init", payload: { token: "x".repeat(length) } });
  socket.send(token(socketLimits.initBytes));
  const [code] = await once(socket, "close");
  assert.equal(code, 1009);

  const allowed = await connect(t, attacked, false);
  allowed.socket.send(token(socketLimits.initBytes - 100));
  assert.equal((await allowed.next()).type, "connection_ack");
});

test("what arrives of messages counts against the memory of all clients", async (t) => {
  const admission = createAdmission({ maxCalls: undefined });
  const intake = new Intake({ admission, budget: createMemoryBudget(1_000_000) });
  const attacked = await rig(t, {}, { intake });
  const size = limits.messageBytes / 2;
  // Whole messages do not count: each is handled and freed.
  const control = await connect(t, attacked);
  for (let i = 0; i < 4; i++)
    control.socket.send(`{"type":"ping","payload":{"x":"${"x".repeat(size)}"}}`);
  for (let i = 0; i < 4; i++) await control.next();
  assert.deepEqual(attacked.cuts, []);
  const peers = await Promise.all([connect(t, attacked), connect(t, attacked)]);
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
  async messages({ socket }: Peer) {
    socket.send('{"type":"ping"}');
    await new Promise((resolve) => setImmediate(resolve));
  },
} as const;

for (const [name, send] of Object.entries(kinds)) {
  test(`a flood of ${name} cuts its socket`, async (t) => {
    const attacked = await rig(t);
    const peer = await connect(t, attacked);
    while (peer.socket.readyState === WebSocket.OPEN) await send(peer);
    assert.deepEqual(attacked.cuts, ["message_flood"]);
    await neighboursServed(t, attacked);
  });

  test(`control: ${name} within the limit do not cut their socket`, async (t) => {
    const attacked = await rig(t);
    const peer = await connect(t, attacked);
    for (let i = 0; i < socketLimits.messages.burst - 10; i++) await send(peer);
    peer.socket.send(subscribe("1", budget));
    while ((await peer.next()).type !== "next");
    assert.deepEqual(attacked.cuts, []);
  });
}

test("ws cuts a socket that does not read the pongs to its pings", async (t) => {
  const attacked = await rig(t);
  const { socket } = await connect(t, attacked);
  socket.pause();
  for (let i = 0; i < socketLimits.messages.burst - 10; i++) socket.ping();
  socket.resume();
  await once(socket, "close");
  await neighboursServed(t, attacked);
});

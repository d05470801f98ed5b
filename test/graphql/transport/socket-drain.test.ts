import assert from "node:assert/strict";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import WebSocket from "ws";
import { GatewayError } from "../../../src/errors.ts";
import { createFeed } from "../feed.ts";
import { type Served, serve } from "../serve.ts";
import { rawSocket } from "../socket.ts";

const watch = `subscription { paymentUpdated(externalId: "order-1") { cursor } }`;

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
  assert.deepEqual(
    busy.messages.map(({ type }) => type),
    ["next", "complete"],
  );
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

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import net, { type Socket } from "node:net";
import { test } from "node:test";
import { http1Options, limitHttp1 } from "../../src/net/http1.ts";
import { ReadTurns } from "../../src/net/read-turns.ts";
import { listen } from "../listen.ts";
import { openIntake } from "./open-intake.ts";

const count = 30;

/**
 * Opens connections that have each begun a request, lets them all send as many chunks of one byte
 * as Node reads at once, and returns how many were cut for it in each turn of the event loop.
 */
async function cutInEachTurn(t: import("node:test").TestContext, isShared: boolean) {
  const intake = openIntake();
  let cuts: number[] = [];
  let begun = 0;
  const cut = (socket: Socket) => {
    socket.destroy();
    cuts[cuts.length - 1]! += 1;
  };
  const server = createServer(http1Options, (request, response) => {
    intake.body(request, response, request.socket, () => cut(request.socket));
    begun += 1;
    if (begun === count) server.emit("begun");
  });
  limitHttp1(server, {}, intake.budget, () => {});
  if (isShared) server.on("connection", (socket) => intake.readTurns.add(socket));
  const port = await listen(server);
  const sockets = Array.from({ length: count }, () => net.connect(port, "127.0.0.1"));
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
    server.closeAllConnections();
  });
  const closed = sockets.map(
    (socket) => new Promise((resolve) => socket.on("error", () => {}).on("close", resolve)),
  );
  for (const socket of sockets) {
    socket.write("POST / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n");
  }
  await once(server, "begun");
  cuts = [0];
  let isOver = false;
  const turn = () => {
    cuts.push(0);
    if (!isOver) setImmediate(turn);
  };
  turn();
  // The system has all of it before the next turn.
  for (const socket of sockets) socket.write("1\r\n \r\n".repeat(11_000));
  await Promise.all(closed);
  isOver = true;
  assert.equal(
    cuts.reduce((a, b) => a + b),
    count,
  );
  return cuts.filter((n) => n > 0);
}

test("connections whose bodies take long to read are read in turns", async (t) => {
  const cuts = await cutInEachTurn(t, true);
  assert.ok(cuts.length >= count / 2, `cut in each turn: ${cuts}`);
});

test("control: apart from the intake, most are read in one turn", async (t) => {
  const cuts = await cutInEachTurn(t, false);
  assert.ok(cuts.length < count / 2, `cut in each turn: ${cuts}`);
});

test("a connection that was paused for something else stays paused", async (t) => {
  const readTurns = new ReadTurns();
  const [paused, reading, removed] = [new net.Socket(), new net.Socket(), new net.Socket()];
  for (const socket of [paused, reading, removed]) {
    t.after(() => socket.destroy());
    readTurns.add(socket.resume());
  }
  paused.pause();
  readTurns.remove(removed);
  readTurns.hasRead();
  for (const startedMs = performance.now(); performance.now() < startedMs + 20; );
  readTurns.hasRead();
  const states = () => [paused, reading, removed].map((socket) => socket.isPaused());
  assert.deepEqual(states(), [true, true, false]);
  await new Promise((resolve) => setImmediate(resolve));
  assert.deepEqual(states(), [true, false, false]);
});

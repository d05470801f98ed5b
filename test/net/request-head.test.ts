import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { connect } from "node:net";
import { type TestContext, test } from "node:test";
import type { Received } from "../../src/net/intake.ts";
import { headOfHttp1, type RequestHead } from "../../src/net/request-head.ts";
import { listen } from "../listen.ts";
import { openIntake } from "./open-intake.ts";

const maxBytes = 10;
const intake = openIntake();

/** Passes each request to `serve` in the next turn of the loop, when a short body is there. */
async function serving(t: TestContext, serve: (head: RequestHead) => void) {
  const server = createServer((request, response) => {
    const head = headOfHttp1(
      request,
      response,
      intake.body(request, response, request.socket, () => {}),
    );
    setImmediate(() => serve(head));
  });
  const socket = connect(await listen(server), "127.0.0.1").setEncoding("utf8");
  t.after(() => {
    socket.destroy();
    server.close();
  });
  let answers = "";
  socket.on("data", (text) => {
    answers += text;
  });
  return {
    socket,
    /** Resolves when the connection has received `count` responses. */
    async answered(count: number) {
      while (answers.split("HTTP/1.1 200").length <= count) await once(socket, "data");
    },
  };
}

const post = (body: string, length = body.length) =>
  `POST / HTTP/1.1\r\nhost: here\r\ncontent-length: ${length}\r\n\r\n${body}`;

const answerOf = (head: RequestHead) =>
  head.send({ status: 200, headers: { "content-length": "0" }, body: "" });

test("a body that arrived with its headers is at hand, and the next request is served", async (t) => {
  const bodies: (string | undefined)[] = [];
  const { socket, answered } = await serving(t, (head) => {
    bodies.push(head.body.atHand(maxBytes)?.toString());
    answerOf(head);
  });
  socket.write(post("first") + post("") + post("0123456789"));
  await answered(3);
  socket.write(post("last"));
  await answered(4);
  assert.deepEqual(bodies, ["first", "", "0123456789", "last"]);
});

test("a body that is incomplete or too long is not at hand, and is received", async (t) => {
  const bodies: Received[] = [];
  const arrived = Promise.withResolvers<void>();
  const { socket, answered } = await serving(t, async (head) => {
    assert.equal(head.body.atHand(maxBytes), undefined);
    const received = head.body.receive({ maxBytes, timeoutMs: 60_000 });
    arrived.resolve();
    bodies.push(await received);
    answerOf(head);
  });
  socket.write(post("half", 8));
  await arrived.promise;
  socket.write("half");
  await answered(1);
  socket.write(post("01234567890"));
  await answered(2);
  assert.deepEqual(bodies.map(String), ["halfhalf", "too-large"]);
});

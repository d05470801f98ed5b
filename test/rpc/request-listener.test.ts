import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { test } from "node:test";
import type { ConnectRouter } from "@connectrpc/connect";
import { createAdmission, freeSlot } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { headOfHttp1, headOfHttp2 } from "../../src/net/request-head.ts";
import type { AdmissionGate } from "../../src/rpc/admission-gate.ts";
import type { Methods } from "../../src/rpc/methods.ts";
import { createRequestListener } from "../../src/rpc/request-listener.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { listen } from "../listen.ts";

const intake = new Intake({
  budget: createMemoryBudget(),
  admission: createAdmission({ maxCalls: undefined }),
});
const inlet = { intake, cut() {} };

/** A listener whose only method, /x, throws outside of its protocol, and its logged warnings. */
function broken() {
  const warned: object[] = [];
  const handler = async () => {
    throw new Error("broken while handling 4111111111111111");
  };
  const router = {
    handlers: [
      Object.assign(handler, { requestPath: "/x", method: { methodKind: "unary" }, service: {} }),
    ],
  } as unknown as ConnectRouter;
  const log = { debug() {}, info() {}, warn: (record: object) => warned.push(record), error() {} };
  const limits = { maxUnaryTimeoutMs: 1000, requestTimeoutMs: 1000, readMaxBytes: 1000, intake };
  const methods: Methods = { all: [], async serve() {}, cut() {} };
  const gate: AdmissionGate = { enter: ({ start }) => start(freeSlot) };
  return {
    listener: createRequestListener(router, limits, log, noTracing, gate, methods),
    warned,
  };
}

test("a call whose method throws outside of its protocol is cut, over HTTP/1.1", async () => {
  const { listener, warned } = broken();
  const server = http.createServer((request, response) =>
    listener(headOfHttp1(request, response, inlet)),
  );
  await assert.rejects(fetch(`http://127.0.0.1:${await listen(server)}/x`, { method: "POST" }));
  server.close();
  assert.equal(warned.length, 1);
  assert.doesNotMatch(JSON.stringify(warned), /41111111/);
});

test("a call whose method throws outside of its protocol is reset, over HTTP/2", async () => {
  const { listener, warned } = broken();
  const server = http2.createServer();
  server.on("stream", (stream, headers, _flags, raw) =>
    listener(headOfHttp2(stream, headers, raw, inlet)),
  );
  const session = http2.connect(`http://127.0.0.1:${await listen(server)}`);
  const stream = session.request({ ":method": "POST", ":path": "/x" });
  stream.end();
  const [error] = await once(stream, "error");
  assert.match(error.message, /NGHTTP2_INTERNAL_ERROR/);
  session.destroy();
  server.close();
  assert.equal(warned.length, 1);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { test } from "node:test";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { createAdmission, freeSlot } from "../../src/net/admission.ts";
import { Intake } from "../../src/net/intake.ts";
import { createMemoryBudget } from "../../src/net/memory-budget.ts";
import { headOfHttp1, headOfHttp2 } from "../../src/net/request-head.ts";
import type { AdmissionGate } from "../../src/rpc/admission-gate.ts";
import type { Methods } from "../../src/rpc/methods.ts";
import { createRequestListener } from "../../src/rpc/request-listener.ts";
import type { ServedMethod } from "../../src/rpc/served-call.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { listen } from "../listen.ts";

const intake = new Intake({
  budget: createMemoryBudget(),
  admission: createAdmission({ maxCalls: undefined }),
});

/** A listener that cannot serve its only method, /x, and its logged errors. */
function broken() {
  const errors: object[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (record: object) => errors.push(record) };
  const method: Partial<ServedMethod> = { requestPath: "/x", method: Health.method.check };
  const methods: Methods = {
    all: [method as ServedMethod],
    async serve() {
      throw new Error("broken while handling 4111111111111111");
    },
    cut() {},
  };
  const gate: AdmissionGate = (_method, _head, start) => start(freeSlot);
  return { listener: createRequestListener(methods, gate, noTracing, log), errors };
}

test("a call that cannot be served is answered 500, over HTTP/1.1", async () => {
  const { listener, errors } = broken();
  const server = http.createServer((request, response) =>
    listener(
      headOfHttp1(
        request,
        response,
        intake.body(request, request.socket, () => {}),
      ),
    ),
  );
  const answer = await fetch(`http://127.0.0.1:${await listen(server)}/x`, { method: "POST" });
  assert.equal(answer.status, 500);
  assert.equal(await answer.text(), "");
  server.close();
  assert.equal(errors.length, 1);
});

test("a call that cannot be served is answered 500, over HTTP/2", async () => {
  const { listener, errors } = broken();
  const server = http2.createServer();
  server.on("stream", (stream, headers) => {
    const session = stream.session as http2.ServerHttp2Session;
    listener(
      headOfHttp2(
        stream,
        session,
        headers,
        intake.body(stream, session, () => {}),
      ),
    );
  });
  const session = http2.connect(`http://127.0.0.1:${await listen(server)}`);
  const stream = session.request({ ":method": "POST", ":path": "/x" });
  stream.resume().end();
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 500);
  session.destroy();
  server.close();
  assert.equal(errors.length, 1);
});

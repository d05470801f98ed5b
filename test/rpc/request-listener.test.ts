import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { test } from "node:test";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { headOfHttp1, headOfHttp2 } from "../../src/net/request-head.ts";
import { noReport } from "../../src/report.ts";
import type { ServingOptions } from "../../src/rpc/methods.ts";
import { defaultLimits, type ServedMethod } from "../../src/rpc/methods.ts";
import { createRequestListener } from "../../src/rpc/request-listener.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { noTracing } from "../../src/telemetry/tracing/tracing.ts";
import { ask } from "../ask.ts";
import { listen } from "../listen.ts";
import { openIntake } from "../net/open-intake.ts";

const intake = openIntake();

/** A listener that cannot serve its only method, /x, and its logged errors. */
function broken() {
  const errors: object[] = [];
  const error = (record: object | string) => void errors.push(record as object);
  const log = { ...createLogger("silent"), error };
  const method = {
    ...{ requestPath: "/x", method: Health.method.check },
    get allowedMethods(): string[] {
      throw new Error("broken while handling 4111111111111111");
    },
  };
  const options: Partial<ServingOptions> = {
    admission: createAdmission({ maxCalls: undefined }),
    limits: defaultLimits,
    ...{ log, tracing: noTracing, report: noReport },
  };
  const methods = [method as unknown as ServedMethod];
  return { listener: createRequestListener(options as ServingOptions, methods), errors };
}

type Listener = ReturnType<typeof createRequestListener>;

/** A server that passes its requests to the listener, over each version of HTTP. */
const servers = {
  "1.1": (listener: Listener) =>
    http.createServer((request, response) => {
      const body = intake.body(request, response, request.socket, () => {});
      listener(headOfHttp1(request, response, body));
    }),
  "2": (listener: Listener) =>
    http2.createServer().on("stream", (stream, headers) => {
      const session = stream.session as http2.ServerHttp2Session;
      const body = intake.body(stream, stream, session, () => {});
      listener(headOfHttp2(stream, session, headers, body));
    }),
};

const statusOf = {
  "1.1": async (url: string) => (await ask(`${url}/x`, { method: "POST" })).status,
  async "2"(url: string) {
    const session = http2.connect(url);
    const stream = session.request({ ":method": "POST", ":path": "/x" });
    stream.resume().end();
    const [headers] = await once(stream, "response");
    session.destroy();
    return headers[":status"];
  },
};

for (const version of ["1.1", "2"] as const) {
  test(`a call that cannot be served is answered 500, over HTTP/${version}`, async () => {
    const { listener, errors } = broken();
    const server = servers[version](listener);
    assert.equal(await statusOf[version](`http://127.0.0.1:${await listen(server)}`), 500);
    server.close();
    assert.equal(errors.length, 1);
  });
}

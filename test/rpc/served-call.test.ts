import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { Code, createClient } from "@connectrpc/connect";
import type { Identify } from "../../src/auth/identify.ts";
import type { Call } from "../../src/core/core.ts";
import { GatewayError } from "../../src/errors.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { type Arrival, createAdmission } from "../../src/net/admission.ts";
import {
  answers,
  envelope,
  failure,
  getPaymentPath,
  http2Call,
  known,
  type Started,
  start,
  wires,
} from "./start.ts";

const nobody: Identify = async () => {
  throw new GatewayError("UNAUTHENTICATED", "an API key or token is needed", {
    reason: "NO_CREDENTIALS",
  });
};

/* `unary-path.test.ts` has the caller, key and deadline that the core receives, in every protocol. */

/** Resolves when the signal aborts. */
function aborted(signal: AbortSignal): Promise<unknown> {
  return signal.aborted ? Promise.resolve() : once(signal, "abort");
}

for (const { protocol, httpVersion, name } of wires) {
  test(`a caller that cancels its call aborts it in the core by ${name}`, async () => {
    const entered = Promise.withResolvers<Call>();
    await using started = await start({
      getPayment: async (_request, call) => {
        entered.resolve(call);
        await aborted(call.signal);
        // A plain AbortError, as fetch throws it.
        throw new DOMException("aborted", "AbortError");
      },
    });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const controller = new AbortController();
    const failed = failure(client.getPayment({}, { signal: controller.signal }));
    const { signal } = await entered.promise;
    controller.abort();
    assert.equal((await failed).code, Code.Canceled);
    await aborted(signal);
    assert.equal((signal.reason as GatewayError).code, "CANCELLED");
    const record = await started.logged(({ message }) => message === "rpc");
    assert.equal(record.code, "CANCELLED");
    assert.equal(started.records.length, 1);
  });
}

for (const [protocol, header, value] of [
  ["connect", "connect-timeout-ms", "9999999999"],
  ["grpc", "grpc-timeout", "99999999H"],
] as const) {
  test(`a ${header} longer than the server allows is shortened`, async () => {
    async function* none() {}
    await using started = await start({ ...answers, watchPayment: none });
    const client = createClient(PaymentService, started.transport(protocol, "2"));
    const before = Date.now();
    const headers = { [header]: value };
    await client.getPayment({}, { headers });
    for await (const _ of client.watchPayment({}, { headers }));
    const [unary, stream] = started.calls.map(({ call }) => (call.deadlineMs ?? 0) - before);
    const slackMs = 30_000;
    assert.ok(unary && unary > 300_000 - slackMs && unary < 300_000 + slackMs);
    // A stream has no such limit, but its timer must not overflow and fire at once.
    assert.ok(stream && stream > 2 ** 31 - slackMs && stream < 2 ** 31 + slackMs);
  });
}

test("admission is told how long a caller waits", async () => {
  const waits: unknown[] = [];
  const admission = createAdmission({ maxCalls: undefined });
  const enter = (arrival: Arrival) => {
    waits.push(arrival.timeoutMs);
    admission.enter(arrival);
  };
  await using started = await start(answers, { admission: { enter, inFlight: 0 } });
  await started.post("GetPayment", "{}");
  await started.post("GetPayment", "{}", { "connect-timeout-ms": "250" });
  const grpc = { "content-type": "application/grpc+json", "grpc-timeout": "2S" };
  await started.post("GetPayment", envelope("{}"), grpc);
  await started.post("GetPayment", "{}", { "connect-timeout-ms": "soon" });
  assert.deepEqual(waits, [undefined, 250, 2_000, undefined]);
});

test("a caller is refused before its request is read", async () => {
  await using started = await start({}, { identify: nobody });
  const session = http2.connect(started.url);
  const stream = session.request(http2Call());
  stream.write('{"externalId":');
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 401);
  const record = await started.logged(({ message }) => message === "rpc");
  const told = [record.method, record.code, record.reason, record.caller];
  assert.deepEqual(told, [getPaymentPath.slice(1), "UNAUTHENTICATED", "NO_CREDENTIALS", undefined]);
  stream.close();
  session.destroy();
});

test("a request id that could forge a log record, or is a card number, is replaced", async () => {
  await using started = await start(answers);
  const ids = await Promise.all(
    ["a b", "x".repeat(200), "{}", "card-4111-1111-1111-1111"].map(async (id) => {
      const answer = await started.post("GetPayment", "{}", { "x-request-id": id });
      return answer.headers.get("x-request-id") ?? "";
    }),
  );
  for (const id of ids) assert.match(id, /^[0-9a-f-]{36}$/);
  assert.equal(new Set(ids).size, 4);
});

test("a call writes one log record, which has the external_id and no more of its messages", async () => {
  await using started = await start({
    async getPayment({ externalId }, call) {
      call.onAbout?.(externalId);
      return known;
    },
  });
  const client = createClient(PaymentService, started.transport("grpc", "2"));
  await client.getPayment({ externalId: "order-77" }, { headers: { "x-request-id": "trace-1" } });
  const { durationMs, ...record } = await started.logged(() => true);
  assert.deepEqual(record, {
    level: "info",
    message: "rpc",
    method: "payments.v1.PaymentService/GetPayment",
    code: "OK",
    requestId: "trace-1",
    caller: "shop",
    account: "default",
    externalId: "order-77",
    protocol: "grpc",
  });
  assert.equal(typeof durationMs, "number");
  assert.equal(started.records.length, 1);
  assert.equal(started.calls[0]?.call.requestId, "trace-1", "the core has the id of the record");
});

test("a rate budget that cannot be read does not fail the call", async () => {
  await using started = await start({
    ...answers,
    rateLimit: () => {
      throw new Error("no bucket");
    },
  });
  const client = createClient(PaymentService, started.transport("connect", "2"));
  assert.equal((await client.getPayment({})).cursor, "c1");
});

const watchPath = "/payments.v1.PaymentService/WatchPayment";
const message = "amount: 1,50 € is no decimal (100% sure)";

async function rig(t: TestContext, options: Parameters<typeof start>[1] = {}): Promise<Started> {
  const getPayment = async () => {
    throw new GatewayError("INVALID_ARGUMENT", message, { reason: "INVALID" });
  };
  const rpc = await start({ getPayment }, options);
  t.after(() => rpc[Symbol.asyncDispose]());
  return rpc;
}

function connect(t: TestContext, rpc: Started): http2.ClientHttp2Session {
  const session = http2.connect(rpc.url);
  t.after(() => session.destroy());
  return session;
}

test("a charset in quotes is the same one", async (t) => {
  const rpc = await rig(t);
  const type = { "content-type": 'application/json; charset="UTF-8"' };
  const stream = connect(t, rpc).request({ ":method": "POST", ":path": getPaymentPath, ...type });
  stream.resume().end("{}");
  await once(stream, "response");
  assert.equal(rpc.calls.length, 1);
});

test("a request that is no call is refused by its status, and gives its slot back", async (t) => {
  const admission = createAdmission({ maxCalls: 10 });
  const rpc = await rig(t, { admission });
  const session = connect(t, rpc);
  const ofOther = { "content-type": "text/plain" };
  for (const [status, headers] of [
    [415, ofOther],
    [415, { ":path": watchPath, ...ofOther }],
    [405, { ":method": "PUT" }],
    [400, { ":authority": "host:port", "content-type": "application/json" }],
  ] as const) {
    const stream = session.request({ ":method": "POST", ":path": getPaymentPath, ...headers });
    stream.resume().end();
    const [answer] = await once(stream, "response");
    assert.equal(answer[":status"], status);
    assert.equal(admission.inFlight, 0);
  }
  assert.equal(rpc.records.length, 0);
  assert.equal(rpc.calls.length, 0);
});

test("a message that grows too many times as large is refused in these words", async (t) => {
  const rpc = await rig(t);
  const bytes = gzipSync(JSON.stringify({ externalId: "x".repeat(900_000) }));
  const answer = await rpc.post("GetPayment", bytes, { "content-encoding": "gzip" });
  assert.equal(answer.status, 429);
  assert.match(await answer.text(), /message grows more than 100 times as large/);
});

test("a request with expect: 100-continue is answered 100 before its body", async (t) => {
  const head = http2Call("GetPayment", { expect: "100-continue" });
  const stream = connect(t, await rig(t)).request(head);
  await once(stream, "continue");
  stream.resume().end("{}");
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 400);
});

/** Paths of requests whose body does not end, and the status of their responses. */
const early = { [getPaymentPath]: 429, "/nowhere": 404 };

for (const [path, status] of Object.entries(early)) {
  test(`a response ${status} before the end of its request closes the stream without an error`, async (t) => {
    const rpc = await rig(t, { limits: { readMaxBytes: 10 } });
    const stream = connect(t, rpc).request(http2Call("GetPayment", { ":path": path }));
    stream.resume().write("x".repeat(100));
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], status);
    await once(stream, "close");
    assert.equal(stream.rstCode, http2.constants.NGHTTP2_NO_ERROR);
  });
}

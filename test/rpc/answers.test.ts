import assert from "node:assert/strict";
import { once } from "node:events";
import http2 from "node:http2";
import { type TestContext, test } from "node:test";
import { gzipSync } from "node:zlib";
import { GatewayError } from "../../src/errors.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { envelope, type Started, start } from "./start.ts";

const timeout = 20_000;
const path = "/payments.v1.PaymentService/GetPayment";
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

test("grpc-message percent-encodes only the characters that gRPC requires", {
  timeout,
}, async (t) => {
  const stream = connect(t, await rig(t)).request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc+json",
    te: "trailers",
  });
  stream.resume().end(envelope("{}"));
  const [headers] = await once(stream, "response");
  const raw = String(headers["grpc-message"]);
  assert.equal(raw, "amount: 1,50 %E2%82%AC is no decimal (100%25 sure)");
  assert.equal(decodeURIComponent(raw), message);
});

test("a request that is no call is refused by its status, and gives its slot back", {
  timeout,
}, async (t) => {
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
    const stream = session.request({ ":method": "POST", ":path": path, ...headers });
    stream.resume().end();
    const [answer] = await once(stream, "response");
    assert.equal(answer[":status"], status);
    assert.equal(admission.inFlight, 0);
  }
  assert.equal(rpc.records.length, 0);
  assert.equal(rpc.calls.length, 0);
});

test("a compressed message in an address grows to 16 KiB at most", { timeout }, async (t) => {
  const { url } = await rig(t);
  for (const [bytes, status] of [
    [16_000, 400],
    [17_000, 429],
  ] as const) {
    const message = gzipSync(JSON.stringify({ externalId: "x".repeat(bytes) }));
    const query = new URLSearchParams({ encoding: "json", compression: "gzip", base64: "1" });
    query.set("message", message.toString("base64url"));
    const read = await fetch(`${url}${path}?${query}`);
    assert.equal(read.status, status, await read.text());
  }
});

test("a message that grows too many times as large is refused in these words", {
  timeout,
}, async (t) => {
  const rpc = await rig(t);
  const bytes = gzipSync(JSON.stringify({ externalId: "x".repeat(900_000) }));
  const answer = await rpc.post("GetPayment", bytes, { "content-encoding": "gzip" });
  assert.equal(answer.status, 429);
  assert.match(await answer.text(), /message grows more than 100 times as large/);
});

test("a request with expect: 100-continue is answered 100 before its body", {
  timeout,
}, async (t) => {
  const stream = connect(t, await rig(t)).request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/json",
    expect: "100-continue",
  });
  await once(stream, "continue");
  stream.resume().end("{}");
  const [headers] = await once(stream, "response");
  assert.equal(headers[":status"], 400);
});

/** Paths of requests whose body does not end, and the status of their responses. */
const early = { [path]: 429, "/nowhere": 404 };

for (const [path, status] of Object.entries(early)) {
  test(`a response ${status} before the end of its request closes the stream without an error`, {
    timeout,
  }, async (t) => {
    const rpc = await rig(t, { limits: { readMaxBytes: 10 } });
    const stream = connect(t, rpc).request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/json",
    });
    stream.resume().write("x".repeat(100));
    const [headers] = await once(stream, "response");
    assert.equal(headers[":status"], status);
    await once(stream, "close");
    assert.equal(stream.rstCode, http2.constants.NGHTTP2_NO_ERROR);
  });
}

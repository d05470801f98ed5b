import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { create } from "@bufbuild/protobuf";
import { Code, createClient } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip } from "@connectrpc/connect-node";
import { EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  GetPaymentResponseSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { defaultLimits } from "../../src/rpc/server.ts";
import { answeredPayment } from "../core/answers.ts";
import { start, wires } from "./start.ts";

const known = create(GetPaymentResponseSchema, { cursor: "c1" });
const text = "0123456789".repeat(5_000);
const echo = {
  createPayment: async (request: { description?: string | undefined }) =>
    answeredPayment({ externalId: request.description ?? "" }),
};
const encodings = { gzip: compressionGzip, br: compressionBrotli };

for (const { protocol, httpVersion, name } of wires) {
  test(`messages are compressed in both directions by ${name}`, async () => {
    await using started = await start(echo);
    for (const [encoding, compression] of Object.entries(encodings)) {
      const transport = started.transport(protocol, httpVersion, {
        sendCompression: compression,
        acceptCompression: [compression],
      });
      let told: string | null = null;
      const { payment } = await createClient(PaymentService, transport).createPayment(
        { description: text },
        {
          onHeader: (header) => {
            told = header.get("content-encoding") ?? header.get("grpc-encoding");
          },
        },
      );
      assert.equal(payment?.externalId, text);
      assert.equal(told, encoding);
    }
  });

  test(`a message beyond the limit is RESOURCE_EXHAUSTED, compressed or not, by ${name}`, async () => {
    await using started = await start(echo);
    const bomb = { description: "x".repeat(defaultLimits.readMaxBytes + 1) };
    for (const sendCompression of [undefined, compressionGzip, compressionBrotli]) {
      const compression = sendCompression ? { sendCompression } : {};
      const transport = started.transport(protocol, httpVersion, compression);
      const client = createClient(PaymentService, transport);
      await assert.rejects(client.createPayment(bomb), { code: Code.ResourceExhausted });
      assert.equal((await client.createPayment({ description: text })).payment?.externalId, text);
    }
    assert.equal(started.calls.length, 3);
  });
}

test("a decompression bomb is cut at the limit, not unpacked", async () => {
  await using started = await start(echo);
  const bomb = gzipSync(Buffer.alloc(128 * 1024 * 1024, " "));
  const before = process.memoryUsage().rss;
  const refusals = Array.from({ length: 8 }, async () => {
    const answer = await fetch(`${started.url}/payments.v1.PaymentService/CreatePayment`, {
      method: "POST",
      headers: { "content-type": "application/json", "content-encoding": "gzip" },
      body: bomb,
    });
    const { code } = (await answer.json()) as { code: string };
    return [answer.status, code];
  });
  for (const refusal of await Promise.all(refusals)) {
    assert.deepEqual(refusal, [429, "resource_exhausted"]);
  }
  const grown = process.memoryUsage().rss - before;
  assert.ok(grown < 256 * 1024 * 1024, `${grown} bytes more`);
});

test("no response may be cached, not even one to a GET", async () => {
  await using started = await start({ getPayment: async () => known });
  const path = "/payments.v1.PaymentService/GetPayment";
  const query = `connect=v1&encoding=json&message=${encodeURIComponent('{"external_id":"o"}')}`;
  const answers = await Promise.all([
    fetch(`${started.url}${path}?${query}`),
    fetch(`${started.url}${path}?${query.replace("external_id", "nothing")}`),
    fetch(`${started.url}/payments.v1.PaymentService/CreatePayment?${query}`),
    fetch(started.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: "{}",
    }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 400, 405, 200],
  );
  for (const { headers } of answers) assert.equal(headers.get("cache-control"), "no-store");
});

test("JSON that is not UTF-8 is refused however it is sent, and a U+FFFD in valid UTF-8 is kept", async () => {
  const ids: string[] = [];
  const read = ({ externalId }: { externalId: string }) => void ids.push(externalId);
  await using started = await start({
    async getPayment(request) {
      read(request);
      return known;
    },
    async *watchPayment(request) {
      read(request);
      yield create(EventSchema, { cursor: "c1" });
    },
  });
  const path = "/payments.v1.PaymentService/GetPayment";
  const post = (type: string, body: Buffer<ArrayBuffer>, headers: Record<string, string> = {}) => ({
    url: path,
    init: { method: "POST", headers: { "content-type": type, ...headers }, body },
  });
  const get = (query: string) => ({ url: `${path}?connect=v1&encoding=json&${query}`, init: {} });
  const envelope = (data: Buffer<ArrayBuffer>) => {
    const head = Buffer.alloc(5);
    head.writeUInt32BE(data.length, 1);
    return Buffer.concat([head, data]);
  };
  const waysOf = (json: Buffer<ArrayBuffer>) => ({
    post: post("application/json", json),
    compressed: post("application/json", gzipSync(json), { "content-encoding": "gzip" }),
    "gRPC-Web": post("application/grpc-web+json", envelope(json)),
    stream: {
      ...post("application/connect+json", envelope(json)),
      url: "/payments.v1.PaymentService/WatchPayment",
    },
    get: get(
      `message=${json.toString("latin1").replace(/[^ -~]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)}`,
    ),
    "get in base64": get(`base64=1&message=${json.toString("base64url")}`),
  });
  for (const [bytes, id] of [
    ["\xff", undefined],
    ["\xc3(", undefined],
    ["\xed\xa0\x80", undefined],
    ["\xc3\xa9", "é"],
    ["\xef\xbf\xbd", "\ufffd"],
  ] as const) {
    const json = Buffer.from(`{"external_id":"${bytes}"}`, "latin1");
    for (const [name, { url, init }] of Object.entries(waysOf(json))) {
      const answer = await fetch(started.url + url, init);
      const text = decodeURIComponent(await answer.text());
      if (id === undefined) {
        assert.match(text, /UTF-8/, `${name}: ${text}`);
        assert.match(text, /invalid_argument|grpc-status: 3\r/, name);
      } else {
        assert.deepEqual(ids.splice(0), [id], name);
      }
    }
    assert.deepEqual(ids, []);
  }

  // Raw non-ASCII bytes in the address: fetch would percent-encode them.
  const raw = http.request({
    port: started.port,
    host: "127.0.0.1",
    path: `${path}?connect=v1&encoding=json&message={"external_id":"\xc3\xa9"}`,
    agent: false,
  });
  raw.end();
  const [answer] = (await once(raw, "response")) as [http.IncomingMessage];
  answer.resume();
  assert.equal(answer.statusCode, 400);
  assert.deepEqual(ids, []);
});

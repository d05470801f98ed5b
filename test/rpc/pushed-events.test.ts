import assert from "node:assert/strict";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import { test } from "node:test";
import { brotliDecompressSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { GatewayError } from "../../src/errors.ts";
import { type Event, EventSchema } from "../../src/gen/payments/v1/event_pb.ts";
import {
  PaymentService,
  WatchPaymentRequestSchema,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { createFeed } from "../graphql/feed.ts";
import { timeoutMs, until } from "../until.ts";
import { envelope, start, wires } from "./start.ts";

function event(cursor: string, padding = 0): Event {
  return create(EventSchema, { cursor, externalId: "order-1".padEnd(padding, "x") });
}

for (const { protocol, httpVersion, name } of wires) {
  test(`pushed events keep their order among the others, and the error comes last, by ${name}`, async () => {
    const { watch, waits, push, offer, fail } = createFeed();
    await using started = await start({ watchPayment: watch });
    const client = createClient(PaymentService, started.transport(protocol, httpVersion));
    const large = 5_000;
    const seen: (Event | undefined)[] = [];
    const read = (async () => {
      for await (const message of client.watchPayment({})) seen.push(message.event);
    })();
    await until(waits);
    assert.equal(offer(event("c1")), true);
    assert.equal(offer(event("c2", large)), true);
    await until(() => seen.length === 2);
    push(event("c3"));
    await until(() => seen.length === 3);
    await until(waits);
    assert.equal(offer(event("c4")), true);
    fail(new GatewayError("UNAVAILABLE", "the gateway is shutting down", { resumeCursor: "c4" }));
    await assert.rejects(read, /shutting down/);
    assert.deepEqual(
      seen,
      ["c1", "c2", "c3", "c4"].map((cursor) => event(cursor, cursor === "c2" ? large : 0)),
    );
    assert.equal(offer(event("c5")), false, "nothing is written behind the end");
  });
}

/** The body of a watch of three events, either all yielded or all pushed. */
async function bodyOf(headers: Record<string, string>, pushes: boolean): Promise<Buffer> {
  const { watch, waits, push, offer, finish } = createFeed();
  await using started = await start({ watchPayment: watch });
  const request = http.request(`${started.url}/payments.v1.PaymentService/WatchPayment`, {
    method: "POST",
    agent: false,
    headers,
  });
  const isJson = headers["content-type"]?.endsWith("json");
  const asked = create(WatchPaymentRequestSchema, { externalId: "order-1" });
  const message = isJson ? '{"externalId":"order-1"}' : toBinary(WatchPaymentRequestSchema, asked);
  request.end(envelope(message));
  const [response] = (await once(request, "response", {
    signal: AbortSignal.timeout(timeoutMs),
  })) as [http.IncomingMessage];
  const chunks: Buffer[] = [];
  response.on("data", (chunk: Buffer) => chunks.push(chunk));
  const ended = once(response, "end", { signal: AbortSignal.timeout(timeoutMs) });
  for (const each of [event("c1"), event("c2", 5_000), event("c3")]) {
    await until(waits);
    if (pushes) assert.equal(offer(each), true);
    else push(each);
  }
  await until(waits);
  finish();
  await ended;
  return Buffer.concat(chunks);
}

/** The messages in a body, decompressed. */
function messagesIn(body: Buffer): string[] {
  const messages: string[] = [];
  for (let at = 0; at < body.length; ) {
    const data = body.subarray(at + 5, at + 5 + body.readUInt32BE(at + 1));
    messages.push((body[at] === 1 ? brotliDecompressSync(data) : data).toString("base64"));
    at += 5 + data.length;
  }
  return messages;
}

test("a pushed event has exactly the bytes that Connect would write, with every codec", async () => {
  const types = ["application/connect+proto", "application/connect+json"];
  const webTypes = [
    "application/grpc-web",
    "application/grpc-web+proto",
    "application/grpc-web+json",
  ];
  for (const contentType of [...types, ...webTypes]) {
    for (const encoding of [undefined, "gzip", "br"]) {
      const accept = webTypes.includes(contentType)
        ? "grpc-accept-encoding"
        : "connect-accept-encoding";
      const headers = { "content-type": contentType, ...(encoding && { [accept]: encoding }) };
      const [yielded, pushed] = [await bodyOf(headers, false), await bodyOf(headers, true)];
      // Only Connect compresses with brotli: such a stream has its pushed events uncompressed.
      const compared = encoding === "br" ? messagesIn : (body: Buffer) => body.toString("base64");
      assert.deepEqual(compared(pushed), compared(yielded), `${contentType} ${encoding}`);
      assert.ok(yielded.length > 20);
    }
  }
});

test("a full response takes no pushed event until its client reads on", async () => {
  const { watch, waits, offer } = createFeed();
  await using started = await start({ watchPayment: watch });
  const session = http2.connect(started.url, { settings: { initialWindowSize: 1_000 } });
  const stream = session.request({
    ":method": "POST",
    ":path": "/payments.v1.PaymentService/WatchPayment",
    "content-type": "application/grpc",
    te: "trailers",
  });
  try {
    stream.end(Buffer.alloc(5));
    stream.pause();
    await until(waits);
    let taken = 0;
    while (taken < 1_000 && offer(event("c1", 20_000))) taken += 1;
    assert.ok(taken > 0 && taken < 1_000, `${taken} were taken`);
    stream.resume();
    await until(() => offer(event("c2")));
  } finally {
    stream.close();
    session.destroy();
  }
});

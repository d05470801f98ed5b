import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test } from "node:test";
import { GatewayError } from "../../../src/errors.ts";
import { PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import type { EdgeOptions } from "../../../src/graphql/edge.ts";
import { collect } from "../../collect.ts";
import { until } from "../../until.ts";
import { createFeed, paymentEvent, refusing, streaming } from "../feed.ts";
import { subscribeInParts } from "../parts.ts";
import { type Served, serve } from "../serve.ts";

const { PENDING, SUCCESS } = PaymentStatus;
const query = `subscription { paymentUpdated(externalId: "order-1", after: "argument") { final } }`;
const eventStream = { accept: "text/event-stream" };

/** The bytes of buffers, without garbage. */
function bufferBytes(): number {
  collect();
  return process.memoryUsage().arrayBuffers;
}

/** The response that an EventSource would receive. */
const get = (gateway: Served) => gateway.get({ query }, { headers: eventStream });

test("each client receives a random time to reconnect", async (t) => {
  const gateway = await serve(t, streaming(undefined, [paymentEvent("c-1", SUCCESS)]));
  const answers = await Promise.all(Array.from({ length: 20 }, () => get(gateway)));
  const times = answers.map(({ text }) => Number(/^retry: (\d+)$/m.exec(text)?.[1]));
  assert.ok(
    times.every((ms) => ms >= 1_000 && ms <= 3_000),
    times.join(),
  );
  assert.ok(new Set(times).size > 10, times.join());
});

test("an EventSource whose watch cannot begin is told when to come back, a crowded one later", async (t) => {
  for (const [details, least] of [
    [{ retryAfterMs: 4_000 }, 4_000],
    [{ reason: "TOO_MANY_STREAMS" }, 10_000],
  ] as const) {
    const { status, text } = await get(await serve(t, refusing("RESOURCE_EXHAUSTED", details)));
    const waits = [...text.matchAll(/^retry: (\d+)$/gm)].map(([, ms]) => Number(ms));
    assert.equal(status, 200);
    assert.ok((waits.at(-1) ?? 0) >= least, text);
  }
  const { status, headers } = await get(await serve(t, refusing("UNAUTHENTICATED")));
  assert.deepEqual([status, headers.get("www-authenticate")], [401, "Bearer"], "for good");
});

test("a key set that is away ends no EventSource, and a POST with its status", async (t) => {
  const identify: EdgeOptions["identify"] = () =>
    Promise.reject(new GatewayError("UNAVAILABLE", "refused", { retryAfterMs: 4_000 }));
  const gateway = await serve(t, {}, { identify });
  const answer = await get(gateway);
  assert.deepEqual([answer.status, answer.text.includes("event: complete")], [200, false]);
  const posted = await gateway.post({ query }, eventStream);
  assert.deepEqual([posted.status, posted.headers.get("retry-after")], [503, "4"]);
});

test("a stream by a POST does not keep its body", async (t) => {
  const gateway = await serve(t, {
    watchPayment: (request, call) => createFeed().watch(request, call),
  });
  const { port } = new URL(gateway.url);
  const streams = 20;
  const before = bufferBytes();
  for (let count = 1; count <= streams; count++) {
    const variables = { undeclared: "x".repeat(900_000) };
    const body = JSON.stringify({ query, variables });
    const socket = connect(Number(port), "127.0.0.1");
    t.after(() => socket.destroy());
    const head = `POST /graphql HTTP/1.1\r\nhost: 127.0.0.1\r\naccept: text/event-stream\r\n`;
    const type = `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`;
    socket.write(head + type + body);
    await once(socket, "data");
  }
  // V8 frees the memory of buffers beside the program, a little after they were collected.
  await until(() => bufferBytes() - before < (streams / 4) * 900_000);
});

test("an EventSource reconnects after an early end, unless the error is final", async (t) => {
  for (const [code, final] of [
    ["UNAVAILABLE", false],
    ["RESOURCE_EXHAUSTED", false],
    ["UNAUTHENTICATED", true],
  ] as const) {
    const error = new GatewayError(code, "the end", { resumeCursor: "c-5" });
    const gateway = await serve(t, streaming("c-0", [paymentEvent("c-1", PENDING)], error));
    const { status, text } = await get(gateway);
    assert.equal(status, 200);
    assert.match(text, /^retry: \d+\nid: c-5\nevent: next\ndata: .*"resumeCursor":"c-5"/m);
    assert.equal(text.includes("event: complete"), final, code);
    const posted = await gateway.post({ query }, eventStream);
    assert.match(await posted.text(), /event: complete/);
  }
});

test("an EventSource that received no event gets no id, and so resumes from its address", async (t) => {
  // The cursor in the address may belong to an event that ended another stream.
  const error = new GatewayError("UNAVAILABLE", "the end", { resumeCursor: "argument" });
  const gateway = await serve(t, streaming(undefined, [], error));
  assert.doesNotMatch((await get(gateway)).text, /^id:/m);
});

test("text that is not a cursor adds no line to the stream", async (t) => {
  const error = new GatewayError("UNAVAILABLE", "refused", { resumeCursor: "x\nevent: evil" });
  const { text } = await get(await serve(t, streaming("c-0", [], error)));
  assert.match(text, /^id: c-0$/m);
  assert.doesNotMatch(text, /^(id: x|event: evil)/m);
});

const part = "\r\ncontent-type: application/json; charset=utf-8\r\n\r\n{}\r\n--graphql";
type Open = (gateway: Served, signal: AbortSignal) => Promise<Response>;
const silent: readonly [format: string, beat: string, type: string, open: Open][] = [
  [
    "an event stream",
    ":\n\n",
    "text/event-stream",
    ({ url }, signal) =>
      fetch(`${url}?${new URLSearchParams({ query })}`, { headers: eventStream, signal }),
  ],
  [
    "a plain watch",
    ":\n\n",
    "text/event-stream",
    ({ watchUrl }, signal) => fetch(`${watchUrl}/payments/order-1`, { signal }),
  ],
  [
    "multipart",
    part,
    'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
    (gateway, signal) => subscribeInParts(gateway, query, {}, signal),
  ],
];
for (const [format, beat, type, open] of silent) {
  test(`${format} that is silent sends heartbeats that are not events, and ends when its client leaves`, async (t) => {
    const feed = createFeed();
    const gateway = await serve(t, { watchPayment: feed.watch }, { heartbeatMs: 20 });
    const leave = new AbortController();
    const response = await open(gateway, leave.signal);
    assert.equal(response.headers.get("content-type"), type);
    assert.equal(response.headers.get("cache-control"), "no-store, no-transform");
    let text = "";
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (text.endsWith(beat.repeat(3))) break;
    }
    assert.match(text, type === "text/event-stream" ? /^retry: \d+\n\n:/ : /^--graphql\r\n/);
    leave.abort();
    await feed.released;
    assert.equal((await feed.opened).call.signal.aborted, true);
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/errors.ts";
import { PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { createFeed, paymentEvent } from "../feed.ts";
import { type Served, serve } from "../serve.ts";

const { PENDING, SUCCESS } = PaymentStatus;
const query = `subscription { paymentUpdated(externalId: "order-1") { cursor final } }`;
/** The `accept` header that Apollo's clients send with a subscription. */
const accept = "multipart/mixed;boundary=graphql;subscriptionSpec=1.0,application/json";

async function subscribe(gateway: Served, headers: Record<string, string> = {}, document = query) {
  const leave = new AbortController();
  const response = await fetch(gateway.url, {
    method: "POST",
    headers: { accept, "content-type": "application/json", ...headers },
    body: JSON.stringify({ query: document }),
    signal: leave.signal,
  });
  return { response, parts: partsOf(response), leave };
}

/** Reads as Apollo's clients do: a part is complete when the boundary behind it has arrived. */
async function* partsOf(response: Response): AsyncGenerator<unknown> {
  const boundary = "\r\n--graphql";
  let text = "\r\n";
  for await (const chunk of response.body ?? []) {
    text += Buffer.from(chunk).toString();
    for (let end = text.indexOf(boundary); end >= 0; end = text.indexOf(boundary)) {
      const [head = "", body = ""] = text.slice(0, end).split("\r\n\r\n");
      text = text.slice(end + boundary.length);
      if (head === "") continue;
      assert.equal(head.trim(), "content-type: application/json; charset=utf-8");
      const content = JSON.parse(body);
      if (Object.keys(content).length > 0) yield content;
    }
  }
  assert.equal(text, "--\r\n", "nothing comes behind the last boundary");
}

const pending = { payload: { data: { paymentUpdated: { cursor: "c-1", final: false } } } };
const success = { payload: { data: { paymentUpdated: { cursor: "c-2", final: true } } } };

test("Apollo's clients receive each event of a subscription in a part, then the end", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const { response, parts } = await subscribe(gateway);
  assert.equal(response.status, 200);
  assert.equal(
    response.headers.get("content-type"),
    'multipart/mixed;boundary="graphql";subscriptionSpec=1.0',
  );
  assert.equal(response.headers.get("cache-control"), "no-store, no-transform");
  feed.push(paymentEvent("c-1", PENDING));
  assert.deepEqual((await parts.next()).value, pending);
  feed.push(paymentEvent("c-2", SUCCESS));
  assert.deepEqual((await parts.next()).value, success);
  feed.finish();
  assert.equal((await parts.next()).done, true);
  await feed.released;
  const { call } = await feed.opened;
  assert.equal(call.transport, "multipart");
  assert.match(gateway.logged(), /"transport":"multipart"/);
});

test("the error that ends a stream is sent beside a null payload, with the resume cursor", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch });
  const { parts } = await subscribe(gateway);
  feed.push(paymentEvent("c-1", PENDING));
  feed.fail(new GatewayError("UNAVAILABLE", "shutting down", { resumeCursor: "c-1" }));
  await parts.next();
  const { payload, errors } = (await parts.next()).value as {
    payload: null;
    errors: [{ message: string; extensions: object }];
  };
  assert.equal(payload, null);
  assert.equal(errors[0].message, "shutting down");
  assert.deepEqual(errors[0].extensions, { code: "UPSTREAM_UNAVAILABLE", resumeCursor: "c-1" });
  assert.equal((await parts.next()).done, true);
});

test("a subscription that opens no stream is answered as JSON", async (t) => {
  const gateway = await serve(t);
  const { response } = await subscribe(gateway, {}, "subscription { nonsense }");
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  const { errors } = (await response.json()) as { errors: [{ extensions: { code: string } }] };
  assert.equal(errors[0].extensions.code, "GRAPHQL_VALIDATION_FAILED");
});

test("the first format in the accept header is used", async (t) => {
  for (const [asked, type] of [
    ['multipart/mixed; subscriptionSpec="1.0"', "multipart/mixed"],
    ["multipart/mixed;subscriptionSpec=1.0, text/event-stream", "multipart/mixed"],
    ["text/event-stream, multipart/mixed;subscriptionSpec=1.0", "text/event-stream"],
    ["*/*", "text/event-stream"],
  ] as const) {
    const feed = createFeed();
    feed.finish();
    const gateway = await serve(t, { watchPayment: feed.watch });
    const { response } = await subscribe(gateway, { accept: asked });
    assert.equal(response.headers.get("content-type")?.split(";")[0], type, asked);
    await response.text();
  }
});

test("multipart/mixed without subscriptionSpec, or with another version, is answered 406", async (t) => {
  for (const asked of ["multipart/mixed", "multipart/mixed;subscriptionSpec=2.0"]) {
    const gateway = await serve(t, { watchPayment: createFeed().watch });
    const { response } = await subscribe(gateway, { accept: asked });
    assert.equal(response.status, 406, asked);
  }
});

test("a silent multipart stream sends heartbeats, and ends when its client leaves", async (t) => {
  const feed = createFeed();
  const gateway = await serve(t, { watchPayment: feed.watch }, { heartbeatMs: 10 });
  const { response, leave } = await subscribe(gateway);
  const chunks = response.body?.[Symbol.asyncIterator]();
  const empty = "\r\ncontent-type: application/json; charset=utf-8\r\n\r\n{}\r\n--graphql";
  let text = "";
  while (text.length < 9 + 3 * empty.length) {
    text += Buffer.from((await chunks?.next())?.value ?? []).toString();
  }
  assert.ok(text.startsWith(`--graphql${empty}${empty}${empty}`));
  leave.abort();
  await feed.released;
});

import assert from "node:assert/strict";
import { STATUS_CODES } from "node:http";
import { test } from "node:test";
import { fromJsonString } from "@bufbuild/protobuf";
import type { Credentials } from "../../../src/auth/identify.ts";
import { GatewayError, invalidFields } from "../../../src/errors.ts";
import { EventSchema } from "../../../src/gen/payments/v1/event_pb.ts";
import { PaymentStatus } from "../../../src/gen/payments/v1/payment_pb.ts";
import { type Admission, createAdmission } from "../../../src/net/admission.ts";
import { createFeed, paymentEvent, refusing, streaming } from "../feed.ts";
import { type Served, serve, somebody } from "../serve.ts";

const { PENDING, SUCCESS } = PaymentStatus;

const get = (gateway: Served, path: string, init?: RequestInit) =>
  gateway.get(gateway.watchUrl + path, init);

const lines = (text: string) =>
  text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => (line.startsWith("retry: ") ? "retry" : line));

test("each event is proto JSON, with its cursor as id and without an event name", async (t) => {
  const events = [paymentEvent("c-1", PENDING), paymentEvent("c-2", SUCCESS)];
  const gateway = await serve(t, streaming("c-0", events));
  const { status, headers, text } = await get(gateway, "/payments/order-1");
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), "text/event-stream");
  assert.equal(headers.get("cache-control"), "no-store, no-transform");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("referrer-policy"), "no-referrer", "its URL may hold a watch token");
  assert.doesNotMatch(text, /^event:/m);
  const ids = lines(text).filter((line) => !line.startsWith("data: "));
  assert.deepEqual(ids, ["retry", "id: c-0", "id: c-1", "id: c-2"]);
  const data = [...text.matchAll(/^data: (.*)$/gm)].map(([, json = ""]) =>
    fromJsonString(EventSchema, json),
  );
  assert.deepEqual(data, events);
  // Proto JSON would leave out the first.
  assert.deepEqual(
    [...text.matchAll(/"final":(\w+)/g)].map(([, final]) => final),
    ["false", "true"],
  );
});

test("the path names the kind and the external id, and the query the options of a watch", async (t) => {
  const opened = async function* () {};
  const gateway = await serve(t, { watchPayment: opened, watchPayout: opened });
  for (const [path, headers, method, request] of [
    ["/payments/a%2Fb%20%C3%BC", {}, "watchPayment", { externalId: "a/b ü", untilFinal: false }],
    ["/payments/%EF%BF%BD", {}, "watchPayment", { externalId: "\ufffd" }],
    ["/payments/o?until_final=true", {}, "watchPayment", { untilFinal: true }],
    ["/payments/o?until_final=false", {}, "watchPayment", { untilFinal: false }],
    ["/payments/o?after=c-1", {}, "watchPayment", { afterCursor: "c-1", fromStart: false }],
    ["/payments/o?after=earliest", {}, "watchPayment", { fromStart: true }],
    ["/payments/o?after=c-1", { "last-event-id": "c-2" }, "watchPayment", { afterCursor: "c-2" }],
    ["/payments/o?after=c-1", { "last-event-id": "" }, "watchPayment", { afterCursor: "c-1" }],
    ["/payouts/p?after=earliest", {}, "watchPayout", { externalId: "p", fromStart: true }],
    ["/payouts/p?after=c-1", {}, "watchPayout", { externalId: "p", afterCursor: "c-1" }],
  ] as const) {
    const before = gateway.seen().length;
    await get(gateway, path, { headers });
    const [seen] = gateway.seen().slice(before);
    assert.equal(seen?.method, method, path);
    const asked = seen.request as Record<string, unknown>;
    for (const [name, value] of Object.entries(request)) assert.equal(asked[name], value, path);
  }
});

test("a request that is no valid watch is refused with 400, 404 or 405", async (t) => {
  const gateway = await serve(t, { watchPayment: createFeed().watch });
  for (const [path, method, status] of [
    ["/payments/o", "POST", 405],
    ["/payments/o", "PUT", 405],
    ["/payments/o", "DELETE", 405],
    ["/payments/o", "HEAD", 405],
    ["/payments/o", "OPTIONS", 405],
    ["/refunds/o", "GET", 404],
    ["/payments/", "GET", 404],
    ["/payments/o/events", "GET", 404],
    ["/payments/%E0%A4%A", "GET", 400],
    ["/payments/o?until_final=yes", "GET", 400],
  ] as const) {
    const answer = await get(gateway, path, { method });
    assert.equal(answer.status, status, `${method} ${path}`);
    if (status === 405) assert.equal(answer.headers.get("allow"), "GET");
    assert.equal(answer.headers.get("content-type"), "application/problem+json");
    if (method === "HEAD") continue;
    const problem = JSON.parse(answer.text);
    const { type, title, detail } = problem;
    assert.deepEqual(
      { type, title, status: problem.status },
      { type: "about:blank", title: STATUS_CODES[status], status },
    );
    assert.ok(detail, answer.text);
    if (status !== 400) continue;
    // The error names the field as the address does.
    const name = path.includes("?") ? "until_final" : "external_id";
    assert.equal(problem.fields[0].path, name);
    assert.ok(detail.startsWith(`${name}: `), detail);
  }
  assert.deepEqual(gateway.seen(), []);
});

test("a final refusal has a status that ends an EventSource", async (t) => {
  for (const [code, status] of [
    ["INVALID_ARGUMENT", 400],
    ["OUT_OF_RANGE", 400],
    ["UNAUTHENTICATED", 401],
    ["PERMISSION_DENIED", 403],
  ] as const) {
    const gateway = await serve(t, refusing(code, { reason: "WHY" }));
    const { text, ...answer } = await get(gateway, "/payments/order-1");
    assert.equal(answer.status, status, code);
    const { detail, reason, http, ...problem } = JSON.parse(text);
    assert.deepEqual([detail, reason, http], ["refused", "WHY", undefined]);
    assert.equal(problem.status, status);
    if (status === 401) assert.equal(answer.headers.get("www-authenticate"), "Bearer");
  }
});

test("a temporary refusal is answered 200, with the time to reconnect", async (t) => {
  for (const code of ["UNAVAILABLE", "RESOURCE_EXHAUSTED"] as const) {
    const gateway = await serve(t, refusing(code));
    const { status, text } = await get(gateway, "/payments/order-1");
    assert.equal(status, 200, code);
    assert.deepEqual(lines(text), ["retry", ": refused", "retry"]);
  }
  const identify = () => Promise.reject(new GatewayError("UNAVAILABLE", "the issuer is away"));
  const gateway = await serve(t, {}, { identify });
  const { status, text } = await get(gateway, "/payments/order-1");
  assert.deepEqual([status, lines(text)], [200, [": the issuer is away", "retry"]]);
  assert.match(gateway.logged(), /"code":"UPSTREAM_UNAVAILABLE".*"msg":"watch"/);
});

test("a stream that fails ends with its error as a comment, and its last cursor as id", async (t) => {
  const error = new GatewayError("UNAVAILABLE", "shutting\ndata: down", { resumeCursor: "c-1" });
  const gateway = await serve(t, streaming(undefined, [paymentEvent("c-1", PENDING)], error));
  const { text } = await get(gateway, "/payments/order-1");
  const [retry, id, , ...end] = lines(text);
  assert.deepEqual([retry, id], ["retry", "id: c-1"]);
  assert.deepEqual(end, [": shutting data: down", "retry", "id: c-1"]);
});

test("a cursor that is none is refused by the name of where it came from", async (t) => {
  const gateway = await serve(t, {
    // biome-ignore lint/correctness/useYield: it is refused
    async *watchPayment() {
      throw invalidFields([{ path: "after_cursor", message: "is not a cursor" }]);
    },
  });
  for (const [headers, path] of [
    [{}, "after"],
    [{ "last-event-id": "c-9" }, "Last-Event-ID"],
  ] as const) {
    const { status, text } = await get(gateway, "/payments/order-1?after=c-9", { headers });
    const { detail, fields } = JSON.parse(text);
    assert.deepEqual([status, detail], [400, `${path}: is not a cursor`]);
    assert.deepEqual(fields, [{ path, message: "is not a cursor" }]);
  }
});

test("a client that reconnects to a watch that was over gets 204", async (t) => {
  const gateway = await serve(t, { async *watchPayment() {} });
  const headers = { "last-event-id": "c-9" };
  for (const init of [{ headers }, {}]) {
    const { status, text } = await get(gateway, "/payments/order-1?after=c-9", init);
    assert.deepEqual([status, text], [204, ""]);
  }
});

test("a watch token in the address, or a header, identifies the caller", async (t) => {
  const shown: unknown[] = [];
  const identify = async ({ header, watchToken }: Credentials) => {
    shown.push([watchToken, header("authorization")]);
    return somebody;
  };
  const gateway = await serve(t, { async *watchPayment() {} }, { identify });
  await get(gateway, "/payments/o?watch_token=t.o.k");
  await get(gateway, "/payments/o", { headers: { authorization: "Bearer key" } });
  assert.deepEqual(shown, [
    ["t.o.k", undefined],
    [undefined, "Bearer key"],
  ]);
  // The address has the token, so it must not be logged.
  assert.doesNotMatch(gateway.logged(), /t\.o\.k/);
  assert.match(gateway.logged(), /"msg":"watch"/);
});

test("only pages of listed origins may watch, and only they get a preflight answered", async (t) => {
  const page = "https://shop.example";
  const gateway = await serve(t, { async *watchPayment() {} }, { corsOrigins: [page] });
  const from = (origin: string, init: RequestInit = {}, more: Record<string, string> = {}) =>
    get(gateway, "/payments/o", { ...init, headers: { origin, ...more } });
  const listed = await from(page);
  assert.equal(listed.status, 204);
  assert.equal(listed.headers.get("access-control-allow-origin"), page);
  assert.equal(listed.headers.get("vary"), "origin");
  const foreign = await from("https://evil.example");
  assert.equal(foreign.status, 403);
  assert.equal(foreign.headers.get("access-control-allow-origin"), null);

  const asks = {
    "access-control-request-method": "GET",
    "access-control-request-headers": "authorization",
  };
  const preflight = await from(page, { method: "OPTIONS" }, asks);
  assert.equal(preflight.status, 204);
  assert.equal(preflight.headers.get("access-control-allow-origin"), page);
  assert.equal(preflight.headers.get("access-control-allow-headers"), "authorization");
  const refused = await from("https://evil.example", { method: "OPTIONS" }, asks);
  assert.equal(refused.headers.get("access-control-allow-origin"), null);
  assert.equal(refused.headers.get("access-control-allow-headers"), null);
});

test("an open watch holds no admission slot", async (t) => {
  const feed = createFeed();
  const admission = createAdmission({ maxCalls: 10 });
  const gateway = await serve(t, { watchPayment: feed.watch }, { admission });
  const leave = new AbortController();
  const response = await fetch(`${gateway.watchUrl}/payments/order-1`, { signal: leave.signal });
  await response.body?.getReader().read();
  assert.equal(admission.inFlight, 0);
  leave.abort();
});

test("under overload a watch is to come again", async (t) => {
  const refuse: Admission["enter"] = (arrival) => arrival.refuse("watch");
  const admission = { ...createAdmission({ maxCalls: undefined }), enter: refuse };
  const gateway = await serve(t, {}, { admission });
  const watch = await get(gateway, "/payments/order-1");
  assert.deepEqual([watch.status, lines(watch.text)], [200, ["retry"]]);
});

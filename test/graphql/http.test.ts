import assert from "node:assert/strict";
import { once } from "node:events";
import http, { Agent } from "node:http";
import { test } from "node:test";
import type { Identify } from "../../src/auth/identify.ts";
import type { Call } from "../../src/core/core.ts";
import { errorOfAbort, GatewayError } from "../../src/errors.ts";
import { ask } from "../ask.ts";
import { answeredPayment } from "../core/answers.ts";
import { emptyPage } from "../fake-core.ts";
import { openIntake } from "../net/open-intake.ts";
import { serve } from "./serve.ts";

/* `http-path.test.ts` has status, headers and body of each kind of request, and what the core receives. */
const budget = "{ rateLimit { limit } }";
const confirm = (alias: string) =>
  `${alias}: confirmPayment(input: {externalId: "e"}) { __typename }`;

test("the core has the id of a request that its answer names", async (t) => {
  const gateway = await serve(t, { confirmPayment: async () => answeredPayment() });
  const { headers } = await gateway.post({ query: `mutation { ${confirm("a")} }` });
  assert.equal(gateway.seen()[0]?.call.requestId, headers.get("x-request-id"));
});

test("a request with an Idempotency-Key and several mutations runs none of them", async (t) => {
  const gateway = await serve(t, { confirmPayment: async () => answeredPayment() });
  const several = [
    `mutation { ${confirm("a")} ${confirm("b")} }`,
    `mutation { ${confirm("a")} ...More } fragment More on Mutation { ${confirm("b")} }`,
    `mutation { ... on Mutation { ${confirm("a")} ...More } ...More }
      fragment More on Mutation { ${confirm("b")} }`,
  ];
  for (const query of several) {
    const refused = await gateway.run(query, undefined, { "idempotency-key": "key-1" });
    assert.equal(refused.errors[0].extensions.code, "BAD_USER_INPUT");
    assert.equal(refused.data, undefined);
  }
  assert.deepEqual(gateway.seen(), []);
  const without = await gateway.run(several[0] ?? "");
  assert.deepEqual(without.data, { a: { __typename: "Payment" }, b: { __typename: "Payment" } });
  for (const query of [`{ ... { ${confirm("a")} } }`, `{ __typename ${confirm("a")} }`]) {
    const one = await gateway.run(`mutation ${query}`, undefined, { "idempotency-key": "key-1" });
    assert.deepEqual(one.data?.a, { __typename: "Payment" }, query);
  }
});

test("identical reads in one request share one call", async (t) => {
  const gateway = await serve(t, {
    getPayment: async () => ({ payment: { details: { operationId: "o" } } }),
    getPayout: async () => ({ payout: {} }),
    getOperation: async () => ({}),
    listEvents: emptyPage,
    findWalletItems: async () => [{ optionId: "w" }],
    getConfirmationStatus: async () => ({ optionId: "w" }),
  });
  const links = "operationInfo { id } events { cursor }";
  const { errors } = await gateway.run(`{
    a: payment(externalId: "e") { ${links} more: events { cursor } }
    b: payment(externalId: "e") { ${links} }
    c: payout(externalId: "e") { status }
    d: payout(externalId: "e") { status }
    e: operation(externalId: "e", operationId: "o") { id }
    f: walletItems(customer: {externalId: "c"}) { confirmation { status } }
    g: walletItems(customer: {externalId: "c"}) { confirmation { confirmation { status } } }
    h: walletConfirmation(customer: {externalId: "c"}, optionId: "w") { status }
    i: walletItems(customer: {authToken: "c"}) { name }
    j: walletItems(customer: {externalId: "c"}, optionId: "w") { name }
    k: walletItems { name }
  }`);
  assert.equal(errors, undefined);
  const counts: Record<string, number> = {};
  for (const { method } of gateway.seen()) counts[method] = (counts[method] ?? 0) + 1;
  assert.deepEqual(counts, {
    getPayment: 1,
    getPayout: 1,
    getOperation: 1,
    listEvents: 1,
    // Four different reads: by external id, auth token, an option id and the caller's token.
    findWalletItems: 4,
    getConfirmationStatus: 1,
  });
});

test("a read after a mutation does not reuse an earlier read", async (t) => {
  let reads = 0;
  const gateway = await serve(t, {
    confirmPayment: async () => answeredPayment({ externalId: "e", details: { operationId: "o" } }),
    getOperation: async () => ({ statusCode: `read ${++reads}` }),
  });
  const step = `confirmPayment(input: {externalId: "e"}) {
    ... on Payment { operationInfo { statusCode } }
  }`;
  const { data } = await gateway.run(`mutation { a: ${step} b: ${step} }`);
  assert.equal(data.a.operationInfo.statusCode, "read 1");
  assert.equal(data.b.operationInfo.statusCode, "read 2");
});

/** A call to the core that ends only with its signal. */
async function untilAborted(_: unknown, { signal }: Call): Promise<never> {
  await new Promise((resolve) => signal.addEventListener("abort", resolve));
  throw errorOfAbort(signal);
}

test("a client that disconnects cancels its query or mutation", async (t) => {
  for (const operation of [
    `{ operation(externalId: "e", operationId: "o") { id } }`,
    `mutation { ${confirm("a")} }`,
  ]) {
    const called = Promise.withResolvers<void>();
    const aborted = Promise.withResolvers<unknown>();
    const wait = (_: unknown, call: Call): Promise<never> => {
      called.resolve();
      const failed = untilAborted(_, call);
      failed.catch(({ code }) => aborted.resolve(code));
      return failed;
    };
    const gateway = await serve(t, { getOperation: wait, confirmPayment: wait });
    const leave = new AbortController();
    gateway.post({ query: operation }, {}, leave.signal).catch(() => undefined);
    await called.promise;
    leave.abort();
    assert.equal(await aborted.promise, "CANCELLED");
    assert.doesNotMatch(gateway.logged(), /"level":50/);
  }
});

test("an operation that takes too long is cut at its deadline", async (t) => {
  const gateway = await serve(t, { getOperation: untilAborted }, { timeoutMs: 20 });
  const { errors } = await gateway.run(`{ operation(externalId: "e", operationId: "o") { id } }`);
  assert.equal(errors[0].extensions.code, "DEADLINE_EXCEEDED");
});

test("a customer's token is refused in a URL, and taken by POST", async (t) => {
  const gateway = await serve(t, {
    findWalletItems: async () => [],
    getConfirmationStatus: async () => undefined,
  });
  const queries = [
    "query($token: String) { walletItems(customer: {authToken: $token}) { optionId } }",
    `query($token: String) {
      walletConfirmation(customer: {authToken: $token}, optionId: "o") { optionId }
    }`,
  ];
  for (const query of queries) {
    const { text } = await gateway.get({ query, variables: '{"token":"jwt"}' });
    const { code, fields } = JSON.parse(text).errors[0].extensions;
    assert.deepEqual([code, fields[0].path], ["BAD_USER_INPUT", "customer.authToken"]);
    assert.deepEqual(gateway.seen(), []);
  }
  for (const query of queries) {
    assert.equal((await gateway.run(query, { token: "jwt" })).errors, undefined);
  }
  const query = '{ walletItems(customer: {externalId: "c"}) { optionId } }';
  assert.equal((await gateway.get({ query })).text, '{"data":{"walletItems":[]}}');
});

test("an address that is not percent-encoded UTF-8 is refused", async (t) => {
  const gateway = await serve(t);
  const read = encodeURIComponent(budget);
  for (const path of [
    // `fetch` would encode these bytes.
    `/graphql?query=${read}&variables={"id":"\xc3\xa9"}`,
    "/watch/payments/\xc3\xa9",
    "/watch/payments/%ff",
    "/watch/payments/%ed%a0%80",
    "/watch/payments/order?after=%ff",
  ]) {
    assert.equal((await ask(gateway.url, { path })).status, 400, path);
  }
  assert.deepEqual(gateway.seen(), []);
});

test("a body that a page may send without a preflight is refused, also of a listed page", async (t) => {
  const origin = "https://shop.example";
  const gateway = await serve(t, {}, { corsOrigins: [origin] });
  const body = JSON.stringify({ query: `mutation { ${confirm("a")} }` });
  for (const headers of [{}, { origin }]) {
    for (const type of [
      ...["text/plain; application/json", "text/plain,application/json"],
      ...["multipart/form-data; boundary=application/json", undefined],
    ]) {
      const sent = { ...headers, ...(type && { "content-type": type }) };
      const answer = await ask(gateway.url, { method: "POST", headers: sent, body });
      assert.equal(answer.status, 415, type);
    }
  }
  assert.deepEqual(gateway.seen(), []);
});

test("a mutation whose Accept names no type of GraphQL is answered as JSON, a subscription with 406", async (t) => {
  const gateway = await serve(t, { confirmPayment: async () => answeredPayment() });
  for (const accept of ["text/html", "multipart/mixed", "image/png, nonsense"]) {
    const paid = await gateway.post({ query: `mutation { ${confirm("a")} }` }, { accept });
    assert.equal(paid.headers.get("content-type"), "application/json; charset=utf-8");
    assert.deepEqual(await paid.json(), { data: { a: { __typename: "Payment" } } });
    const query = "subscription { events { cursor } }";
    const { status } = await gateway.post({ query }, { accept });
    assert.equal(status, 406, accept);
  }
  assert.equal(gateway.seen().length, 3, "no stream was begun");
});

test("a client is served again after a body over 1 MiB, sent with its length or in chunks", async (t) => {
  const gateway = await serve(t);
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.after(() => agent.destroy());
  const post = (body: string, more: Record<string, string | number>) => {
    const headers = { "content-type": "application/json", ...more };
    return ask(gateway.url, { agent, method: "POST", headers, body });
  };
  const long = JSON.stringify({ query: "x".repeat(3 * 1024 * 1024) });
  for (const framing of [{ "content-length": long.length }, { "transfer-encoding": "chunked" }]) {
    for (let n = 0; n < 3; n++) assert.equal((await post(long, framing)).status, 413);
    const { status, text } = await post(JSON.stringify({ query: budget }), {});
    assert.deepEqual([status, text], [200, '{"data":{"rateLimit":{"limit":10}}}']);
  }
});

test("a body that is not needed is not held until its end", async (t) => {
  const intake = openIntake();
  const identify: Identify = () =>
    Promise.reject(new GatewayError("UNAUTHENTICATED", "who are you?"));
  const gateway = await serve(t, {}, { identify, intake });
  const headers = { "content-type": "application/json", "transfer-encoding": "chunked" };
  const request = http.request(gateway.url, { method: "POST", headers, agent: false });
  request.write("x".repeat(10_000));
  const [response] = (await once(request, "response")) as [http.IncomingMessage];
  assert.equal(response.statusCode, 401);
  assert.equal(intake.budget.bytes, 0);
  request.on("error", () => {}).destroy();
});

test("a body that is dropped to free memory is refused as overload, however it is framed", async (t) => {
  const gateway = await serve(t, {}, { intake: openIntake(64 * 1024) });
  const body = JSON.stringify({ query: budget, variables: { more: "x".repeat(500_000) } });
  for (const framing of [{ "content-length": body.length }, { "transfer-encoding": "chunked" }]) {
    const headers = { "content-type": "application/json", ...framing };
    const answer = await ask(gateway.url, { method: "POST", headers, body });
    assert.deepEqual([answer.status, answer.headers["retry-after"]], [503, "1"], answer.text);
    const { code, reason } = JSON.parse(answer.text).errors[0].extensions;
    assert.deepEqual([code, reason], ["RATE_LIMITED", "OVERLOADED"]);
  }
});

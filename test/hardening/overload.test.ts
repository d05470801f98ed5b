import assert from "node:assert/strict";
import { once } from "node:events";
import http, { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type TestContext, test } from "node:test";
import { Code, createClient } from "@connectrpc/connect";
import { ErrorInfoSchema, RetryInfoSchema } from "../../src/gen/google/rpc/error_details_pb.ts";
import { Health } from "../../src/gen/grpc/health/v1/health_pb.ts";
import type { Event } from "../../src/gen/payments/v1/event_pb.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { createAdmission } from "../../src/net/admission.ts";
import { answeredPayment } from "../core/answers.ts";
import { clientOf, hostedPayment, paymentTold, sendCallback } from "../gateway/callers.ts";
import { type Answer, serve } from "../graphql/serve.ts";
import { socketClient } from "../graphql/socket.ts";
import { closing } from "../of-suite.ts";
import { failure, getPaymentPath, known, type Started, start, wires } from "../rpc/start.ts";
import { startBefore, startTestGateway } from "../start.ts";
import { scrapeOf } from "../telemetry/scrape.ts";
import { until } from "../until.ts";
import { recordCuts } from "./cuts.ts";

/** The RPC edge with a limit of two calls, which wait for `release`; watches wait for `events`. */
async function rpcWithTwoPlaces(t: TestContext) {
  const release = Promise.withResolvers<void>();
  const events = Promise.withResolvers<Event>();
  const cuts = recordCuts();
  const admission = createAdmission({ maxCalls: 2 });
  const rpc = await start(
    {
      getPayment: async () => {
        await release.promise;
        return known;
      },
      createPayment: async () => {
        await release.promise;
        return answeredPayment({ id: "p-1" });
      },
      async *watchPayment() {
        yield { cursor: "c1" } as Event;
        yield await events.promise;
      },
    },
    { admission, report: cuts.report },
  );
  t.after(() => rpc[Symbol.asyncDispose]());
  return { rpc, admission, cuts, release, events };
}

/** Resolves when `n` calls have reached the core. */
const reached = (rpc: Started, n: number) => until(() => rpc.calls.length >= n);

for (const { protocol, httpVersion, name } of wires) {
  test(`${name}: a call beyond the limit is refused at once with a retry delay`, async (t) => {
    const { rpc, admission, cuts, release, events } = await rpcWithTwoPlaces(t);
    const client = createClient(PaymentService, rpc.transport(protocol, httpVersion));
    const health = createClient(Health, rpc.transport(protocol, httpVersion));
    const watch = client.watchPayment({ externalId: "e" })[Symbol.asyncIterator]();
    assert.equal((await watch.next()).value?.event?.cursor, "c1");

    const reads = [client.getPayment({ externalId: "e" }), client.getPayment({ externalId: "e" })];
    await reached(rpc, 3);
    await assertOverloaded(client.getPayment({ externalId: "e" }));
    const second = client.watchPayment({ externalId: "e" })[Symbol.asyncIterator]();
    await assertOverloaded(second.next());
    await assertOverloaded(client.createPayment({ externalId: "e" }));
    assert.deepEqual(cuts.refused, ["other", "watch", "money"]);
    assert.equal(rpc.calls.length, 3, "a refused call reaches nobody");

    assert.equal((await health.check({})).status, 1);
    events.resolve({ cursor: "c2" } as Event);
    assert.equal((await watch.next()).value?.event?.cursor, "c2", "open streams go on");
    assert.equal((await watch.next()).done, true);

    release.resolve();
    for (const read of reads) assert.equal((await read).cursor, "c1");
    assert.equal((await client.getPayment({ externalId: "e" })).cursor, "c1");
    assert.equal(admission.inFlight, 0);
  });
}

async function assertOverloaded(call: Promise<unknown>): Promise<void> {
  const error = await failure(call);
  assert.equal(error.code, Code.ResourceExhausted);
  assert.equal(error.findDetails(RetryInfoSchema)[0]?.retryDelay?.seconds, 1n);
  assert.equal(error.findDetails(ErrorInfoSchema)[0]?.reason, "OVERLOADED");
}

test("a call whose body has not arrived holds no slot", async (t) => {
  const { rpc, admission } = await rpcWithTwoPlaces(t);
  const slow = http.request(rpc.url + getPaymentPath, {
    ...{ method: "POST", agent: false, headers: { "content-type": "application/json" } },
  });
  slow.on("error", () => {}).write('{"external');
  while (admission.inFlight < 1) await new Promise((resolve) => setImmediate(resolve));
  while (admission.inFlight > 0) await new Promise((resolve) => setImmediate(resolve));
  const client = createClient(PaymentService, rpc.transport("connect", "2"));
  const call = client.createPayment({ externalId: "e" });
  await reached(rpc, 1);
  assert.equal(admission.inFlight, 1);
  slow.end('_id":"e"}');
  await reached(rpc, 2);
  assert.equal(admission.inFlight, 2);
  slow.destroy();
  call.catch(() => {});
});

const read = '{ payment(externalId: "e") { id } }';
const pay = `mutation { createPayment(input: {amount: "1", currency: "EUR", mode: HOSTED,
  externalId: "e", paymentMethod: {type: CARD}}) { ... on Payment { id } } }`;

async function graphqlWith(t: TestContext, maxCalls: number) {
  const release = Promise.withResolvers<void>();
  const admission = createAdmission({ maxCalls });
  const cuts = recordCuts();
  const options = {
    admission,
    report: cuts.report,
    corsOrigins: ["https://shop.example"],
  };
  const served = await serve(
    t,
    {
      getPayment: () => release.promise.then(() => known),
      createPayment: () => release.promise.then(() => answeredPayment({ id: "p-1" })),
      async *watchPayment() {
        yield { cursor: "c1" } as Event;
        await release.promise;
      },
    },
    options,
  );
  const reached = (n: number) => until(() => served.seen().length >= n);
  return { served, release, admission, cuts, reached };
}

async function assertRefused(answer: Response): Promise<void> {
  assert.equal(answer.status, 503);
  assert.equal(answer.headers.get("retry-after"), "1");
  const { errors } = (await answer.json()) as Answer;
  assert.deepEqual(errors[0].extensions, {
    code: "RATE_LIMITED",
    reason: "OVERLOADED",
    retryAfterSeconds: 1,
  });
}

test("GraphQL refuses at once with 503, which CORS lets pages read", async (t) => {
  const { served, release, cuts, reached } = await graphqlWith(t, 1);
  const first = served.run(pay);
  await reached(1);
  await assertRefused(await served.post({ query: pay }));
  await assertRefused(await fetch(`${served.url}?query=${encodeURIComponent(read)}`));
  // After any status other than 200, an EventSource would not reconnect.
  const asked = `${served.url}?query=${encodeURIComponent("subscription { events { cursor } }")}`;
  const stream = await fetch(asked, { headers: { accept: "text/event-stream" } });
  assert.equal(stream.status, 200);
  assert.match(await stream.text(), /^retry: \d{4}\n\n$/);
  const origin = "https://shop.example";
  const toPage = await served.post({ query: read }, { origin });
  assert.equal(toPage.headers.get("access-control-allow-origin"), origin);
  assert.match(toPage.headers.get("access-control-expose-headers") ?? "", /\bretry-after\b/);
  assert.equal(toPage.headers.get("vary"), "origin");
  await assertRefused(toPage);
  const typed = await served.post(
    { query: read },
    { accept: "application/graphql-response+json, application/json" },
  );
  assert.match(typed.headers.get("content-type") ?? "", /^application\/graphql-response\+json/);
  assert.deepEqual(cuts.refused, ["unknown", "other", "watch", "unknown", "unknown"]);
  release.resolve();
  assert.equal((await first).data.createPayment.id, "p-1");
  assert.equal(served.seen().length, 1);
});

test("an open stream holds no slot, by SSE and by WebSocket", async (t) => {
  const { served, release, admission } = await graphqlWith(t, 1);
  const query = 'subscription { paymentUpdated(externalId: "e") { cursor } }';
  const sse = await served.post({ query }, { accept: "text/event-stream" });
  const reader = sse.body?.getReader();
  let text = "";
  while (!text.includes("c1")) text += new TextDecoder().decode((await reader?.read())?.value);
  assert.equal(admission.inFlight, 0);

  const client = socketClient(t, served);
  const events = client.iterate({ query });
  assert.ok((await events.next()).value);
  assert.equal(admission.inFlight, 0);
  const answers = client.iterate({ query: read });
  const pending = answers.next();
  while (admission.inFlight < 1) await new Promise((resolve) => setImmediate(resolve));
  await assert.rejects(client.iterate({ query: pay }).next(), (errors: Answer) => {
    assert.equal(errors[0].extensions.reason, "OVERLOADED");
    assert.equal(errors[0].extensions.retryAfterSeconds, 1);
    return true;
  });
  release.resolve();
  assert.ok((await pending).value);
  await reader?.cancel();
});

test("an overloaded gateway still answers callbacks, health checks and operators", async (t) => {
  // A payments service that answers only when the test does.
  const upstream = createServer();
  const env = { MAX_CONCURRENT_CALLS: "1", UPSTREAM_TIMEOUT: "10m", AUTH_MODE: "none" };
  const gateway = closing(t, await startBefore(upstream, env));
  const asked = once(upstream, "request") as Promise<[IncomingMessage, ServerResponse]>;
  const payments = clientOf(PaymentService, gateway);
  const slow = payments.createPayment(hostedPayment("slow"));
  const [, answer] = await asked;
  await assert.rejects(payments.getPayment({ externalId: "e" }), { code: Code.ResourceExhausted });

  await sendCallback(gateway, paymentTold("other"), { password: "password" });
  assert.equal((await clientOf(Health, gateway).check({})).status, 1);
  assert.equal((await fetch(`${gateway.adminUrl}/healthz`)).status, 200);
  assert.equal((await fetch(`${gateway.adminUrl}/readyz`)).status, 200);
  const { value } = await scrapeOf(gateway);
  assert.ok((value("calls_refused_total", { listener: "rpc", kind: "other" }) ?? 0) > 0);
  assert.equal(value("calls_in_flight", {}), 1);
  answer.setHeader("content-type", "application/json");
  answer.end('{"external_id":"slow","details":{"payment_id":"p","status":"pending"}}');
  assert.equal((await slow).payment?.details?.paymentId, "p");
});

test("MAX_BUFFERED_BYTES bounds the bodies of all callers together", async (t) => {
  const mebibyte = 1024 * 1024;
  const gateway = closing(t, await startTestGateway({ MAX_BUFFERED_BYTES: `${8 * mebibyte}` }));
  const answers = Array.from({ length: 9 }, () => {
    const request = http.request(`${gateway.publicUrl}/callbacks/default/payments`, {
      ...{ method: "POST", agent: false },
      headers: { "x-service-signature": `${"A".repeat(27)}=`, "content-length": mebibyte },
    });
    t.after(() => request.destroy());
    request.on("error", () => {}).write(Buffer.alloc(mebibyte - 1));
    return once(request, "response") as Promise<[IncomingMessage]>;
  });
  const [{ statusCode }] = await Promise.any(answers);
  assert.equal(statusCode, 503);
});

import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { Code } from "@connectrpc/connect";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import { PaymentService } from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { listen } from "../listen.ts";
import { logRecords } from "../log-records.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { startTestGateway } from "../start.ts";
import {
  type Collector,
  newTrace,
  startCollector,
  tracedBy,
} from "../telemetry/tracing/collector.ts";
import {
  clientOf,
  dataOf,
  hostedPayment,
  paymentTold,
  payoutRequest,
  sendCallback,
  socketClient,
} from "./callers.ts";
import { watch } from "./watches.ts";

const password = "password";

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly externalId: string;
}

let redis: RedisServer | undefined;
let collector: Collector;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
/** Two replicas if Redis is available, else the same gateway twice. */
let gateways: [Gateway, Gateway];
const { log, records } = logRecords();

before(async () => {
  if (!withoutRedis) redis = await startRedis();
  collector = await startCollector();
  upstream = await startUpstream();
  const first = await start(tracedBy(collector));
  gateways = [first, redis ? await start(tracedBy(collector)) : first];
});
after(async () => {
  await Promise.all([...new Set(gateways)].map((gateway) => gateway.stop()));
  upstream.close();
  collector.close();
  await redis?.close();
});

function start(env: Record<string, string>): Promise<Gateway> {
  return startTestGateway(
    {
      ...env,
      ...(redis ? { REDIS_URL: redis.url } : {}),
      UPSTREAM_URL: upstream.url,
      UPSTREAM_LOGIN: "shop",
      UPSTREAM_PASSWORD: password,
      AUTH_MODE: "none",
      RATE_LIMIT_INITIAL: "10000",
      RECONCILE_AFTER: "50ms",
    },
    {},
    log,
  );
}

/**
 * Answers that a payment is pending and a payout succeeded. The start of an external_id changes
 * that: `lost` cuts a payout's first request, `outage` answers a payment with 503, and `early` sends
 * its callback before the answer.
 */
async function startUpstream() {
  const requests: Received[] = [];
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const url = request.url ?? "";
    const externalId = /"?external_id"?[:=]"?([\w-]+)/.exec(body || url)?.[1] ?? "";
    const isFirst = !requests.some((earlier) => earlier.externalId === externalId);
    requests.push({ headers: request.headers, externalId });
    if (externalId.startsWith("lost") && isFirst) return void response.destroy();
    if (externalId.startsWith("early")) await callback(externalId);
    const isPayout = url.includes("/payouts/");
    const payout = {
      ...{ external_id: externalId, transaction_id: `t-${externalId}`, status: "success" },
    };
    response.statusCode = externalId.startsWith("outage") ? 503 : 200;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify(isPayout ? payout : paymentTold(externalId, "pending")));
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    requestFor: (externalId: string) =>
      requests.find((request) => request.externalId === externalId) ?? assert.fail(externalId),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

const callback = (externalId: string, to = gateways[0]) =>
  sendCallback(to, paymentTold(externalId), { password });

/** The span of a trace with this kind. */
const spanOf = (traceId: string, kind: "server" | "client") =>
  collector.span((span) => span.traceId === traceId && span.kind === kind);

const mutationOf = (externalId: string) => `mutation Secret {
  createPayment(input: {
    amount: "10.10", currency: "UAH", mode: HOSTED, externalId: "${externalId}"
    paymentMethod: { type: CC_TOKEN }
  }) { __typename ... on Payment { id } }
}`;

type Caller = (externalId: string, headers: Record<string, string>) => Promise<unknown>;

const pay = (
  by: "Connect" | "gRPC",
  externalId: string,
  headers: Record<string, string>,
  more: { amount?: string } = {},
) =>
  clientOf(PaymentService, gateways[0], by).createPayment(
    { ...hostedPayment(externalId), ...more },
    { headers },
  );

const callers: Record<string, Caller> = {
  "Connect over HTTP/1.1": (externalId, headers) => pay("Connect", externalId, headers),
  "gRPC over HTTP/2": (externalId, headers) => pay("gRPC", externalId, headers),
  "GraphQL by POST": async (externalId, headers) => {
    const { createPayment } = await dataOf(gateways[0], mutationOf(externalId), { headers });
    assert.equal(createPayment.__typename, "Payment");
  },
  "GraphQL by WebSocket": async (externalId, headers) => {
    class WithHeaders extends WebSocket {
      constructor(url: string, protocols: string) {
        super(url, protocols, { headers });
      }
    }
    const client = socketClient(gateways[0], { webSocketImpl: WithHeaders });
    const results = client.iterate({ query: mutationOf(externalId) });
    assert.match(JSON.stringify(await results.next()), /"Payment"/);
    await results.return?.();
    await client.dispose();
  },
};

for (const [name, call] of Object.entries(callers)) {
  test(`the trace of a caller by ${name} continues to the payments service`, async () => {
    const { traceId, spanId, headers } = newTrace();
    const externalId = `order-${name.replace(/\W/g, "-")}`;
    await call(externalId, { ...headers, tracestate: "vendor=x", baggage: "user=jo" });

    const sent = upstream.requestFor(externalId).headers;
    const server = await spanOf(traceId, "server");
    const client = await spanOf(traceId, "client");
    assert.equal(server.parentSpanId, spanId);
    assert.equal(client.parentSpanId, server.spanId);
    assert.equal(sent.traceparent, `00-${traceId}-${client.spanId}-01`);
    assert.deepEqual([sent.tracestate, sent.baggage], [undefined, undefined]);
    assert.equal(client.name, "POST /api/payments/v1/new");
    assert.equal(client.attributes["http.response.status_code"], 200);
    assert.equal(client.attributes["server.port"], Number(new URL(upstream.url).port));
    const record = records.find((one) => one.span_id === server.spanId);
    assert.deepEqual([record?.trace_id, record?.code], [traceId, "OK"]);
    if (name.startsWith("GraphQL")) {
      assert.equal(server.name, "mutation");
      assert.equal(server.attributes["payments_gateway.graphql.fields"], "createPayment");
      assert.equal(server.attributes["http.route"], "/graphql");
      assert.equal(server.attributes["url.scheme"], "http");
      assert.equal(server.attributes["graphql.operation.type"], "mutation");
    } else {
      assert.equal(server.name, "payments.v1.PaymentService/CreatePayment");
      assert.equal(server.attributes["rpc.method"], server.name);
      const status = server.attributes["rpc.system.name"] === "grpc" ? "OK" : undefined;
      assert.equal(server.attributes["rpc.status_code"], status);
      assert.match(`${server.attributes["rpc.system.name"]}`, /^(?:grpc|connectrpc)$/);
      assert.equal(server.attributes["rpc.service"], undefined);
    }
  });
}

test("a callback links to its call, and deliveries link to the callback, across replicas", async () => {
  const externalId = "order-linked";
  const [a, b] = gateways;
  const watches = [watch("SSE", b, externalId), watch("gRPC", b, externalId)];
  const firsts = watches.map((watching) => watching.next());
  const { traceId, headers } = newTrace();
  await clientOf(PaymentService, a).createPayment(hostedPayment(externalId), { headers });
  await Promise.all(firsts);
  await callback(externalId, b);
  for (const watching of watches) {
    await watching.next();
    await watching.leave();
  }

  const received = await collector.span(
    ({ name, links }) =>
      name === "POST /callbacks/{merchant}/payments" &&
      links.some((link) => link.traceId === traceId),
  );
  assert.notEqual(received.traceId, traceId);
  assert.equal(received.attributes["payments_gateway.callback.verdict"], "stored");
  for (const transportName of ["sse", "grpc"]) {
    for (const cause of [traceId, received.traceId]) {
      const delivery = await collector.span(
        ({ name, attributes, links }) =>
          name === "deliver event" &&
          attributes["payments_gateway.transport"] === transportName &&
          links.some((link) => link.traceId === cause),
      );
      if (cause === received.traceId) assert.equal(delivery.links[0]?.spanId, received.spanId);
      const parent = await collector.span(({ spanId }) => spanId === delivery.parentSpanId);
      assert.match(parent.name, /^subscription$|\/WatchPayment$/);
    }
  }
});

test("a callback that arrives before its call's answer also links to the call", async () => {
  const { traceId, headers } = newTrace();
  await pay("Connect", "early-1", headers);
  await collector.span(
    ({ name, links }) => name.startsWith("POST /callbacks/") && links[0]?.traceId === traceId,
  );
});

test("the look-up of an unknown outcome has its own trace, which links to the call", async () => {
  const { traceId, headers } = newTrace();
  await assert.rejects(
    clientOf(PayoutService, gateways[0]).requestPayout(payoutRequest("lost-1"), { headers }),
    { code: Code.Unknown },
  );
  const call = await spanOf(traceId, "server");
  assert.equal(call.attributes["error.type"], "UNKNOWN");
  assert.equal(call.failed, true);
  const lookUp = await collector.span(
    ({ name, attributes, links }) =>
      name === "look up outcome" &&
      links.some((link) => link.traceId === traceId) &&
      attributes["payments_gateway.lookup.outcome"] === "learned",
  );
  assert.equal(lookUp.parentSpanId, "");
  assert.equal(lookUp.attributes["payments_gateway.lookup.method"], "payout");
  const asked = await spanOf(lookUp.traceId, "client");
  assert.equal(asked.name, "GET /api/payouts/v1/info");
});

test("failed spans have the error's code, and a caller's mistake does not fail its span", async () => {
  const [outage, wrong] = [newTrace(), newTrace()];
  await assert.rejects(pay("gRPC", "outage-1", outage.headers));
  await assert.rejects(pay("gRPC", "wrong", wrong.headers, { amount: "1e3" }));

  const client = await spanOf(outage.traceId, "client");
  assert.deepEqual([client.failed, client.attributes["error.type"]], [true, "503"]);
  for (const [{ traceId }, failed, code] of [
    [outage, true, "UNKNOWN"],
    [wrong, false, "INVALID_ARGUMENT"],
  ] as const) {
    const span = await spanOf(traceId, "server");
    assert.deepEqual([span.failed, span.attributes["rpc.response.status_code"]], [failed, code]);
  }
});

test("the log record of a watch whose client disconnected has the ids of its trace", async () => {
  const { traceId, headers } = newTrace();
  const query = 'subscription { paymentUpdated(externalId: "order-left") { source } }';
  const address = `${gateways[0].publicUrl}/graphql?query=${encodeURIComponent(query)}`;
  const gone = new AbortController();
  await fetch(address, {
    headers: { ...headers, accept: "text/event-stream", "x-request-id": "till-8" },
    signal: gone.signal,
  });
  gone.abort();
  const span = await spanOf(traceId, "server");
  const record = records.find(({ requestId }) => requestId === "till-8");
  assert.deepEqual(
    [record?.trace_id, record?.span_id, record?.code],
    [traceId, span.spanId, "CANCELLED"],
  );
});

test("recorded spans are exported when the gateway stops", async () => {
  const late = await startCollector();
  const gateway = await start({ ...tracedBy(late), OTEL_BSP_SCHEDULE_DELAY: "600000" });
  await dataOf(gateway, "{ rateLimit { limit } }");
  assert.deepEqual(late.spans, []);
  await gateway.stop();
  late.close();
  assert.deepEqual(
    late.spans.map(({ name }) => name),
    ["query"],
  );
});

test("a collector that never answers delays neither calls nor the shutdown", async () => {
  const silent = await startCollector(() => undefined);
  const gateway = await start({
    ...tracedBy(silent),
    OTEL_BSP_SCHEDULE_DELAY: "1",
    OTEL_EXPORTER_OTLP_TIMEOUT: "30000",
    SHUTDOWN_TIMEOUT: "1s",
  });
  for (let nth = 0; nth < 5; nth++) await dataOf(gateway, "{ rateLimit { limit } }");
  // If `stop` waited for the export, it would take 30 s or more.
  await gateway.stop();
  silent.close();
});

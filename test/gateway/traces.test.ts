import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import grpc from "@grpc/grpc-js";
import WebSocket from "ws";
import type { Gateway } from "../../src/app/gateway.ts";
import {
  CreatePaymentRequestSchema,
  PaymentService,
} from "../../src/gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../../src/gen/payments/v1/payout_service_pb.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { listen } from "../listen.ts";
import { type RedisServer, startRedis, withoutRedis } from "../redis/server.ts";
import { grpcJsClient } from "../rpc/start.ts";
import { startTestGateway } from "../start.ts";
import { type Collector, startCollector, tracedBy } from "../telemetry/tracing/collector.ts";
import { timeoutMs } from "../until.ts";
import {
  clientOf,
  dataOf,
  hostedPayment,
  payoutRequest,
  postCallback,
  socketClient,
} from "./callers.ts";
import { watch } from "./watches.ts";

const password = "password";

interface Received {
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly externalId: string;
}

let redis: RedisServer | undefined;
let collector: Collector;
let upstream: Awaited<ReturnType<typeof startUpstream>>;
/** Two replicas if Redis is available, else the same gateway twice. */
let gateways: [Gateway, Gateway];
const logged: Record<string, unknown>[] = [];

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
  const write = (line: string) => logged.push(JSON.parse(line));
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
    createLogger("info", { write }),
  );
}

/**
 * Answers that a payment is pending and a payout succeeded. The start of an external_id changes
 * that: `lost` cuts a payout's first request, `outage` answers a payment with 503, and `held`
 * delays its answer until the test releases it.
 */
async function startUpstream() {
  const requests: Received[] = [];
  const lost = new Set<string>();
  const reached = new EventEmitter();
  let release = () => {};
  const server = createServer(async (request, response) => {
    const body = await text(request);
    const url = request.url ?? "";
    const externalId = /"?external_id"?[:=]"?([\w-]+)/.exec(body || url)?.[1] ?? "";
    requests.push({ url, headers: request.headers, externalId });
    const json = (status: number, value: unknown) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
    if (url.includes("/payouts/")) {
      if (!url.includes("/info") && externalId.startsWith("lost") && !lost.has(externalId)) {
        lost.add(externalId);
        return void response.destroy();
      }
      return void json(200, {
        external_id: externalId,
        transaction_id: `t-${externalId}`,
        status: "success",
      });
    }
    if (externalId.startsWith("outage")) return void json(503, {});
    if (externalId.startsWith("held")) {
      await new Promise<void>((resolve) => {
        release = resolve;
        reached.emit("held");
      });
    }
    json(200, payment(externalId, "pending"));
  });
  return {
    url: `http://127.0.0.1:${await listen(server)}`,
    requestFor: (externalId: string) =>
      requests.find((request) => request.externalId === externalId) ?? assert.fail(externalId),
    /** Resolves once a call is held, with a function that releases it. */
    async held() {
      await once(reached, "held");
      return () => release();
    },
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function payment(externalId: string, status: string) {
  return {
    external_id: externalId,
    operation: "payment",
    details: { payment_id: `p-${externalId}`, status },
  };
}

/** A new trace, and the headers of a caller that has it. */
function newTrace() {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-01` } };
}

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
  "grpc-js metadata": async (externalId, headers) => {
    const client = grpcJsClient(PaymentService, Number(new URL(gateways[0].rpcUrl).port));
    const metadata = new grpc.Metadata();
    for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
    const request = create(CreatePaymentRequestSchema, hostedPayment(externalId));
    await new Promise((resolve, reject) => {
      // biome-ignore lint/suspicious/noExplicitAny: grpc-js makes its methods at run time
      (client as any).createPayment(request, metadata, (error: unknown, answer: unknown) =>
        error ? reject(error) : resolve(answer),
      );
    });
    client.close();
  },
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
    const server = await collector.span(
      (span) => span.traceId === traceId && span.kind === "server",
    );
    const client = await collector.span(
      (span) => span.traceId === traceId && span.kind === "client",
    );
    const append = await collector.span(
      (span) => span.traceId === traceId && span.name === "append event",
    );
    assert.equal(server.parentSpanId, spanId);
    assert.equal(client.parentSpanId, server.spanId);
    assert.equal(append.parentSpanId, server.spanId);
    assert.equal(sent.traceparent, `00-${traceId}-${client.spanId}-01`);
    assert.deepEqual([sent.tracestate, sent.baggage], [undefined, undefined]);
    assert.equal(client.name, "POST /api/payments/v1/new");
    assert.equal(client.attributes["http.response.status_code"], 200);
    assert.equal(client.attributes["server.port"], Number(new URL(upstream.url).port));
    const record = logged.find((one) => one.span_id === server.spanId);
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
  assert.equal(await callback(b, externalId), 200);
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
  const append = await collector.span(
    (span) => span.traceId === received.traceId && span.name === "append event",
  );
  for (const transportName of ["sse", "grpc"]) {
    for (const cause of [traceId, received.traceId]) {
      const delivery = await collector.span(
        ({ name, attributes, links }) =>
          name === "deliver event" &&
          attributes["payments_gateway.transport"] === transportName &&
          links.some((link) => link.traceId === cause),
      );
      if (cause === received.traceId) assert.equal(delivery.links[0]?.spanId, append.spanId);
      const parent = await collector.span(({ spanId }) => spanId === delivery.parentSpanId);
      assert.match(parent.name, /^subscription$|\/WatchPayment$/);
    }
  }
});

const callback = async (to: Gateway, externalId: string): Promise<number> =>
  (await postCallback(to, payment(externalId, "success"), { password })).status;

test("a callback that arrives before its call's answer also links to the call", async () => {
  const externalId = "held-1";
  const [a] = gateways;
  const { traceId, headers } = newTrace();
  const held = upstream.held();
  const call = pay("Connect", externalId, headers);
  const release = await held;
  assert.equal(await callback(a, externalId), 200);
  release();
  await call;
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
  const call = await collector.span((span) => span.traceId === traceId && span.kind === "server");
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
  const asked = await collector.span(
    (span) => span.traceId === lookUp.traceId && span.kind === "client",
  );
  assert.equal(asked.name, "GET /api/payouts/v1/info");
});

test("failed spans have the error's code, and a caller's mistake does not fail its span", async () => {
  const [outage, wrong] = [newTrace(), newTrace()];
  await assert.rejects(pay("gRPC", "outage-1", outage.headers));
  await assert.rejects(pay("gRPC", "wrong", wrong.headers, { amount: "1e3" }));

  const client = await collector.span(
    (span) => span.traceId === outage.traceId && span.kind === "client",
  );
  assert.deepEqual([client.failed, client.attributes["error.type"]], [true, "503"]);
  const failed = await collector.span(
    (span) => span.traceId === outage.traceId && span.kind === "server",
  );
  assert.deepEqual(
    [failed.failed, failed.attributes["rpc.response.status_code"]],
    [true, "UNKNOWN"],
  );
  const refused = await collector.span(
    (span) => span.traceId === wrong.traceId && span.kind === "server",
  );
  assert.deepEqual(
    [refused.failed, refused.attributes["rpc.response.status_code"]],
    [false, "INVALID_ARGUMENT"],
  );
});

test("log records have the ids of the trace and of the request", async () => {
  const { traceId, headers } = newTrace();
  await callers["GraphQL by POST"]?.("order-logged", { ...headers, "x-request-id": "till-7" });
  const span = await collector.span((one) => one.traceId === traceId && one.kind === "server");
  const record = logged.find(({ requestId }) => requestId === "till-7");
  assert.deepEqual(
    { ...record, time: "", durationMs: 0 },
    {
      level: "info",
      time: "",
      trace_id: traceId,
      span_id: span.spanId,
      type: "mutation",
      field: "createPayment",
      code: "OK",
      durationMs: 0,
      requestId: "till-7",
      caller: "anonymous",
      account: "default",
      externalId: "order-logged",
      transport: "http",
      msg: "graphql",
    },
  );
  // After the call, no record has its trace id.
  assert.equal(await callback(gateways[0], "order-of-nobody"), 200);
  const other = logged.findLast(({ externalId }) => externalId === "order-of-nobody");
  assert.ok(other?.trace_id);
  assert.notEqual(other?.trace_id, traceId);
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
  const span = await collector.span((one) => one.traceId === traceId && one.kind === "server");
  const record = logged.find(({ requestId }) => requestId === "till-8");
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
    OTEL_BSP_MAX_QUEUE_SIZE: "20",
    OTEL_EXPORTER_OTLP_TIMEOUT: "30000",
    SHUTDOWN_TIMEOUT: "1s",
  });
  const calls = clientOf(PaymentService, gateway, "Connect");
  for (let nth = 0; nth < 50; nth++) {
    const request = hostedPayment(`order-silent-${nth}`);
    const { payment: paid } = await calls.createPayment(request, { timeoutMs: timeoutMs });
    assert.equal(paid?.externalId, request.externalId);
  }
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  assert.match(metrics, /payments_gateway_trace_spans_total\{outcome="dropped"\} [1-9]/);
  // If `stop` waited for the export, it would take 30 s or more.
  await gateway.stop();
  silent.close();
});

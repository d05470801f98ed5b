import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { createServer, type ServerResponse } from "node:http";
import { registerHooks } from "node:module";
import { type TestContext, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { readConfig } from "../../../src/config/config.ts";
import { reportTo } from "../../../src/report.ts";
import { createTracing } from "../../../src/telemetry/telemetry.ts";
import { activeSpan, type RunningTracing } from "../../../src/telemetry/tracing/tracing.ts";
import { version } from "../../../src/version.ts";
import { serve } from "../../listen.ts";
import { closing } from "../../of-suite.ts";
import { freePort } from "../../redis/server.ts";
import { startTestGateway } from "../../start.ts";
import { startCollector, tracedBy } from "./collector.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const remote = `00-${traceId}-b7ad6b7169203331-01`;
const headers = (given: Record<string, string>) => (name: string) => given[name];

type Told = { outcome: string; count: number };

/** Tracing as `env` configures it, with a record of what happened to the spans. */
async function traced(env: Record<string, string>): Promise<RunningTracing & { told: Told[] }> {
  const told: Told[] = [];
  const { tracing } = readConfig(env);
  const running = await createTracing(
    tracing,
    reportTo({
      telemetrySent({ outcome, count }) {
        told.push({ outcome, count });
        if (outcome !== "dropped")
          assert.equal(activeSpan.getStore(), undefined, "the record of an export");
      },
    }),
  );
  return { ...running, told };
}

/** A collector, which closes after the test, and a function that starts tracing to it. */
async function collected(t: TestContext, answer?: () => number | undefined) {
  const collector = closing(t, await startCollector(answer));
  const start = (env: Record<string, string>) => traced({ ...tracedBy(collector), ...env });
  return { collector, start };
}

// This test has to be first, since a loaded module stays loaded.
test("without an OTEL variable nothing of the SDK is loaded", async () => {
  const loaded: string[] = [];
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier.includes("opentelemetry")) loaded.push(specifier);
      return next(specifier, context);
    },
  });
  try {
    const gateway = await startTestGateway();
    await gateway.stop();
    assert.deepEqual(loaded, []);
    const collector = await startCollector();
    const tracing = await traced(tracedBy(collector));
    await tracing.shutdown(1_000);
    collector.close();
    assert.ok(loaded.length > 0, "the hook sees it when it is loaded");
  } finally {
    hooks.deregister();
  }
});

const http = { "http.request.method": "GET", "url.path": "/graphql", "server.port": 443 };
const oldHttp = { "http.method": "GET", "http.target": "/graphql", "net.peer.port": 443 };
const answered = { "http.response.status_code": 200 };
const rpc = { "rpc.system.name": "grpc", "rpc.method": "s/Get" };
const oldRpc = { "rpc.system": "grpc", "rpc.service": "s" };
const [ok, oldOk] = [{ "rpc.response.status_code": "OK" }, { "rpc.grpc.status_code": 0 }];
for (const [asked, first, then, name, attributes] of [
  ["http,graphql,rpc/dup", http, answered, "query", { ...http, ...answered }],
  [
    "http/dup,graphql/dup",
    http,
    answered,
    "query payment",
    { ...http, ...answered, ...oldHttp, "http.status_code": 200 },
  ],
  ["", { ...rpc, ...oldRpc }, { ...ok, ...oldOk }, "query", { ...rpc, ...ok }],
  ["http/dup, rpc", { ...rpc, ...oldRpc }, { ...ok, ...oldOk }, "query", { ...rpc, ...ok }],
  [
    "http,rpc/dup",
    { ...rpc, ...oldRpc },
    { ...ok, ...oldOk },
    "query",
    { ...rpc, ...ok, ...oldRpc, ...oldOk },
  ],
] as const) {
  test(`OTEL_SEMCONV_STABILITY_OPT_IN=${asked} decides about the old names`, async (t) => {
    const env = asked === "" ? {} : { OTEL_SEMCONV_STABILITY_OPT_IN: asked };
    const { collector, start } = await collected(t);
    const tracing = await start(env);
    const span = tracing.start("work", { kind: "server", parent: "root", attributes: first });
    span.rename("query", { of: "graphql", name: "query payment" });
    span.set(then);
    span.end();
    await tracing.shutdown(5_000);
    assert.equal(collector.spans.at(-1)?.name, name);
    assert.deepEqual(collector.spans.at(-1)?.attributes, attributes);
  });
}

test("a span continues the caller's trace and passes it on", async (t) => {
  const { collector, start } = await collected(t);
  const tracing = await start({
    OTEL_SERVICE_NAME: "till",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test%20bed,service.name=other",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=one%2Ctwo",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
  });
  const parent = headers({ traceparent: remote, tracestate: "vendor=free-text", baggage: "k=v" });
  const server = tracing.start("work", {
    kind: "server",
    parent,
    links: [remote, undefined, "not a traceparent"],
    attributes: { "rpc.method": "Get", "rpc.system.name": undefined },
  });
  const carried = server.run(() => {
    const client = tracing.start("ask", { kind: "client" });
    assert.equal(activeSpan.getStore()?.ids?.trace_id, traceId);
    client.fail("timeout");
    client.end();
    return client.headers();
  });
  assert.equal(activeSpan.getStore(), undefined);
  server.end();
  server.set({ "rpc.response.status_code": "too late" });
  await tracing.shutdown(5_000);

  const [ask, work] = collector.spans;
  assert.ok(ask && work);
  assert.equal(work.parentSpanId, "b7ad6b7169203331");
  assert.equal(ask.parentSpanId, work.spanId);
  assert.deepEqual([work.kind, ask.kind], ["server", "client"]);
  assert.deepEqual([work.failed, ask.failed], [false, true]);
  assert.deepEqual(work.attributes, { "rpc.method": "Get" });
  assert.deepEqual(work.links, [{ traceId, spanId: "b7ad6b7169203331" }]);
  assert.deepEqual(carried, ["traceparent", `00-${traceId}-${ask.spanId}-01`]);
  assert.equal(collector.resources[0]?.["service.name"], "till");
  assert.equal(collector.resources[0]?.["deployment.environment.name"], "test bed");
  assert.equal(collector.resources[0]?.["service.version"], version);
  assert.equal(collector.resources[0]?.["telemetry.sdk.language"], "nodejs");
  assert.equal(collector.headers[0]?.["x-tenant"], "one,two");
  assert.equal(collector.headers[0]?.url, "/v1/traces");
  assert.doesNotMatch(collector.raw(), /free-text/);
  assert.deepEqual(tracing.told, [{ outcome: "exported", count: 2 }]);
});

test("the sampler decides, and a parent-based one follows the caller", async (t) => {
  const { start } = await collected(t);
  const sampled = async (sampler: string, parent: string | undefined, arg = "") => {
    const tracing = await start({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: arg });
    const span = tracing.start("work", {
      kind: "server",
      parent: headers(parent === undefined ? {} : { traceparent: parent }),
    });
    const child = span.run(() => tracing.start("part", { kind: "internal" }));
    assert.equal(child.traceparent !== undefined, span.traceparent !== undefined);
    const flags = span.headers()[1]?.slice(-2);
    assert.equal(flags, span.traceparent === undefined ? "00" : "01");
    await tracing.shutdown(1_000);
    return span.traceparent !== undefined;
  };
  const unsampled = remote.replace(/01$/, "00");
  assert.equal(await sampled("always_on", unsampled), true);
  assert.equal(await sampled("always_off", remote), false);
  assert.equal(await sampled("parentbased_always_on", unsampled), false);
  assert.equal(await sampled("parentbased_always_off", remote), true);
  assert.equal(await sampled("parentbased_always_off", undefined), false);
  assert.equal(await sampled("parentbased_traceidratio", undefined, "0"), false);
  // The ratio depends on the trace id alone, so all services of a trace decide alike.
  const traces = Array.from({ length: 20 }, () => randomBytes(16).toString("hex"));
  const decide = async (trace: string) =>
    sampled("traceidratio", `00-${trace}-b7ad6b7169203331-01`, "0.5");
  const decided = await Promise.all(traces.map(decide));
  assert.deepEqual(await Promise.all(traces.map(decide)), decided);
  assert.equal(new Set(decided).size, 2, "some are sampled, some are not");
});

test("a collector that does not answer fills a bounded queue, and further spans are dropped", async (t) => {
  const queue = { OTEL_BSP_MAX_QUEUE_SIZE: "10" };
  const { start } = await collected(t, () => undefined);
  const tracing = await start({ ...queue, OTEL_EXPORTER_OTLP_TIMEOUT: "500" });
  for (let nth = 0; nth < 100; nth++) tracing.start("work", { kind: "internal" }).end();
  await turn();
  const dropped = tracing.told.filter(({ outcome }) => outcome === "dropped").length;
  assert.ok(dropped >= 80 && dropped < 100, `${dropped} dropped`);
  // Without a limit, shutdown would wait for ever.
  await tracing.shutdown(200);
});

/** Answers of a collector that lies, and how it ends: the gateway closes the connection. */
const lies: Readonly<Record<string, (response: ServerResponse) => void>> = {
  "an answer that never ends": (response) => {
    const more = () => {
      while (response.write("x".repeat(65_536)));
    };
    response.writeHead(200).on("drain", more);
    more();
  },
  "an answer that drips": (response) => {
    response.writeHead(200);
    const drip = setInterval(() => response.write("x"), 5);
    response.on("close", () => clearInterval(drip));
  },
  "headers without an end": (response) => {
    const { socket } = response;
    socket?.write("HTTP/1.1 200 OK\r\n");
    const drip = setInterval(() => socket?.write(`x: ${"y".repeat(1_000)}\r\n`), 1);
    response.on("close", () => clearInterval(drip));
  },
};

for (const [name, lie] of Object.entries(lies)) {
  test(`an export ends in its time-out, whatever the collector answers: ${name}`, async (t) => {
    let isHonest = false;
    const server = createServer((sent, response) => {
      sent.resume();
      if (isHonest) response.writeHead(200).end("ok");
      else lie(response);
    });
    const tracing = await traced({
      ...tracedBy({ url: await serve(t, server) }),
      OTEL_EXPORTER_OTLP_TIMEOUT: "500",
    });
    const outcomes = () => tracing.told.map(({ outcome }) => outcome);
    tracing.start("lost", { kind: "internal" }).end();
    while (!outcomes().includes("failed")) await turn();
    // Control: nothing of it is left under way.
    isHonest = true;
    tracing.start("kept", { kind: "internal" }).end();
    await tracing.shutdown(5_000);
    assert.deepEqual(outcomes(), ["failed", "exported"]);
  });
}

test("failed exports are reported, and a collector that recovers is used again", async (t) => {
  let status = 500;
  const { collector, start } = await collected(t, () => status);
  const tracing = await start({ OTEL_EXPORTER_OTLP_TIMEOUT: "1000" });
  const lost = tracing.start("lost", { kind: "internal" });
  lost.run(() => tracing.start("below", { kind: "internal" }).end());
  lost.end();
  while (!tracing.told.some(({ outcome }) => outcome === "failed")) await turn();
  status = 200;
  tracing.start("kept", { kind: "internal" }).end();
  await collector.span(({ name }) => name === "kept");
  await tracing.shutdown(1_000);
  assert.deepEqual(
    tracing.told.map(({ outcome }) => outcome),
    ["failed", "exported"],
  );

  const alone = await traced({
    ...tracedBy({ url: `http://127.0.0.1:${await freePort()}` }),
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
  });
  alone.start("lost", { kind: "internal" }).end();
  await alone.shutdown(5_000);
  assert.deepEqual(alone.told, [{ outcome: "failed", count: 1 }]);
});

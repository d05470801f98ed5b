import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { ConfigError } from "../../src/config/config-error.ts";
import { version } from "../../src/version.ts";
import { scratch } from "../auth/issuer.ts";

const tracing = (env: Record<string, string>) => readConfig(env).tracing;
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

test("tracing is off until a variable asks for it", () => {
  assert.equal(tracing({}), undefined);
  assert.equal(tracing({ OTEL_SERVICE_NAME: "shop", OTEL_PROPAGATORS: "tracecontext" }), undefined);
  // A platform may set variables for all its programs: they are not checked while tracing is off.
  const grpc = { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
  assert.equal(tracing(grpc), undefined);
  assert.equal(tracing({ ...endpoint, ...grpc, OTEL_SDK_DISABLED: "true" }), undefined);
  assert.equal(tracing({ ...endpoint, OTEL_TRACES_EXPORTER: "none" }), undefined);
  assert.deepEqual(tracing(endpoint)?.exporters, ["otlp"]);
  assert.deepEqual(tracing({ OTEL_TRACES_EXPORTER: "console" })?.exporters, ["console"]);
  assert.deepEqual(tracing({ OTEL_TRACES_EXPORTER: "otlp, console" })?.exporters, [
    "otlp",
    "console",
  ]);
});

test("the endpoint variables decide where spans are sent", () => {
  const url = (env: Record<string, string>) => tracing(env)?.otlp.url;
  assert.equal(url({ OTEL_TRACES_EXPORTER: "otlp" }), "http://localhost:4318/v1/traces");
  assert.equal(url(endpoint), "http://collector:4318/v1/traces");
  assert.equal(
    url({ OTEL_EXPORTER_OTLP_ENDPOINT: "https://otlp.example/base/" }),
    "https://otlp.example/base/v1/traces",
  );
  const own = { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://traces:9/in" };
  assert.equal(url({ ...endpoint, ...own }), "http://traces:9/in");
});

test("the other variables are read, and have defaults", () => {
  const { otlp, ...defaults } = tracing(endpoint) ?? assert.fail();
  assert.deepEqual(defaults, {
    exporters: ["otlp"],
    resource: { "service.name": "payments-gateway", "service.version": version },
    sampler: { parentBased: true, ratio: 1 },
    oldNames: [],
    propagators: ["tracecontext"],
    batch: { delayMs: 5_000, timeoutMs: 30_000, maxQueue: 2_048, maxBatch: 512 },
  });
  assert.deepEqual(otlp.headers, {});
  assert.deepEqual([otlp.compression, otlp.timeoutMs, otlp.tls], ["none", 10_000, {}]);

  const files = scratch();
  const told = tracing({
    ...endpoint,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20t, x-a=1",
    OTEL_EXPORTER_OTLP_TRACES_HEADERS: "x-a=2",
    OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_TIMEOUT: "100",
    OTEL_EXPORTER_OTLP_TRACES_TIMEOUT: "200",
    OTEL_EXPORTER_OTLP_CERTIFICATE: files.write("ca", "CA"),
    OTEL_SERVICE_NAME: "shop",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=other,service.version=9,team=pay%2Cments",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_PROPAGATORS: "tracecontext,baggage",
    OTEL_SEMCONV_STABILITY_OPT_IN: "http,rpc/dup, graphql/dup",
    OTEL_BSP_SCHEDULE_DELAY: "10",
    OTEL_BSP_EXPORT_TIMEOUT: "20",
    OTEL_BSP_MAX_QUEUE_SIZE: "30",
    OTEL_BSP_MAX_EXPORT_BATCH_SIZE: "40",
  });
  assert.deepEqual(told, {
    exporters: ["otlp"],
    otlp: {
      url: "http://collector:4318/v1/traces",
      headers: { authorization: "Bearer t", "x-a": "2" },
      compression: "gzip",
      timeoutMs: 200,
      tls: { ca: "CA" },
    },
    resource: { "service.name": "shop", "service.version": "9", team: "pay,ments" },
    sampler: { parentBased: true, ratio: 0.25 },
    oldNames: ["rpc", "graphql"],
    propagators: ["tracecontext", "baggage"],
    batch: { delayMs: 10, timeoutMs: 20, maxQueue: 30, maxBatch: 40 },
  });
});

test("a wrong sampler argument is refused, and the value of a header is not shown", () => {
  const ratio = { OTEL_TRACES_SAMPLER: "traceidratio", OTEL_TRACES_SAMPLER_ARG: "2" };
  assert.throws(() => tracing({ ...endpoint, ...ratio }), /OTEL_TRACES_SAMPLER_ARG: got "2"/);
  assert.throws(
    () => tracing({ ...endpoint, OTEL_EXPORTER_OTLP_HEADERS: "the-secret" }),
    (error) =>
      error instanceof ConfigError &&
      /OTEL_EXPORTER_OTLP_HEADERS: got a value that is not shown/.test(error.message) &&
      !error.message.includes("the-secret"),
  );
});

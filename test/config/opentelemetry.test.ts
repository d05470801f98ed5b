import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { ConfigError } from "../../src/errors.ts";
import { version } from "../../src/version.ts";
import { scratch } from "../auth/issuer.ts";

const tracing = (env: Record<string, string>) => readConfig(env).tracing;
const metrics = (env: Record<string, string>) => readConfig(env).metrics;
const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };
const disabled = { OTEL_SDK_DISABLED: "true" };
const both = { OTEL_TRACES_EXPORTER: "otlp", OTEL_METRICS_EXPORTER: "otlp" };

const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${text}`;

test("tracing is off until a variable asks for it", () => {
  assert.equal(tracing({}), undefined);
  assert.equal(tracing({ OTEL_SERVICE_NAME: "shop" }), undefined);
  assert.equal(tracing({ OTEL_METRICS_EXPORTER: "otlp" }), undefined);
  // A platform may set variables for all its programs: they are not checked while tracing is off.
  const grpc = { OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" };
  assert.equal(tracing(grpc), undefined);
  assert.equal(tracing({ ...endpoint, ...grpc, ...disabled }), undefined);
  assert.equal(tracing({ ...endpoint, OTEL_TRACES_EXPORTER: "none" }), undefined);
  assert.ok(tracing(endpoint));
  assert.ok(tracing({ OTEL_TRACES_EXPORTER: "otlp" }));
});

test("no metrics are sent until OTEL_METRICS_EXPORTER asks for it", () => {
  assert.equal(metrics({}), undefined);
  assert.equal(metrics(endpoint), undefined);
  for (const exporter of ["none", "prometheus"]) {
    assert.equal(metrics({ OTEL_METRICS_EXPORTER: exporter }), undefined);
  }
  assert.equal(metrics({ ...both, ...disabled }), undefined);
  assert.equal(metrics({ OTEL_METRIC_EXPORT_INTERVAL: "1m" }), undefined, "it is not checked");
  assert.ok(metrics({ OTEL_METRICS_EXPORTER: "prometheus, otlp" }));
});

for (const [signal, read] of [
  ["TRACES", tracing],
  ["METRICS", metrics],
] as const) {
  test(`${signal} are sent to their own address, else to that of all signals`, () => {
    const files = scratch();
    const path = `/v1/${signal.toLowerCase()}`;
    const otlp = (env: Record<string, string>) => read({ ...both, ...env })?.otlp;
    assert.deepEqual(otlp({}), {
      url: `http://localhost:4318${path}`,
      headers: {},
      compression: "none",
      timeoutMs: 10_000,
      tls: {},
    });
    const ofAll = {
      OTEL_EXPORTER_OTLP_ENDPOINT: "https://otlp.example/base/",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/protobuf",
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Bearer%20t, x-a=1",
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
      OTEL_EXPORTER_OTLP_TIMEOUT: "100",
      OTEL_EXPORTER_OTLP_CERTIFICATE: files.write("ca", pem("CA")),
    };
    const sent = {
      url: `https://otlp.example/base${path}`,
      headers: { authorization: "Bearer t", "x-a": "1" },
      compression: "gzip",
      timeoutMs: 100,
      tls: { ca: pem("CA") },
    };
    assert.deepEqual(otlp(ofAll), sent);
    const own = { [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]: "http://own:9/in" };
    assert.deepEqual(otlp({ ...ofAll, ...own }), { ...sent, url: "http://own:9/in" });
  });
}

test("the other variables of traces are read, and have defaults", () => {
  const { otlp: _, ...defaults } = tracing(endpoint) ?? assert.fail();
  assert.deepEqual(defaults, {
    resource: { "service.name": "payments-gateway", "service.version": version },
    sampler: { parentBased: true, ratio: 1 },
    oldNames: [],
    batch: { delayMs: 5_000, maxQueue: 2_048 },
  });
  const told = tracing({
    OTEL_TRACES_EXPORTER: "otlp",
    OTEL_SERVICE_NAME: "shop",
    OTEL_RESOURCE_ATTRIBUTES: "service.name=other,service.version=9,team=pay%2Cments",
    OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.25",
    OTEL_SEMCONV_STABILITY_OPT_IN: "http,rpc/dup, graphql/dup",
    OTEL_BSP_SCHEDULE_DELAY: "10",
    OTEL_BSP_MAX_QUEUE_SIZE: "30",
  });
  const { otlp: __, ...others } = told ?? assert.fail();
  assert.deepEqual(others, {
    resource: { "service.name": "shop", "service.version": "9", team: "pay,ments" },
    sampler: { parentBased: true, ratio: 0.25 },
    oldNames: ["rpc", "graphql"],
    batch: { delayMs: 10, maxQueue: 30 },
  });
});

test("the other variables of metrics are read, and have defaults", () => {
  const { otlp: _, ...defaults } = metrics(both) ?? assert.fail();
  assert.deepEqual(defaults, {
    resource: { "service.name": "payments-gateway", "service.version": version },
    temporality: "cumulative",
    intervalMs: 60_000,
  });
  const told = metrics({
    ...both,
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "Delta",
    OTEL_METRIC_EXPORT_INTERVAL: "5000",
    OTEL_SERVICE_NAME: "till",
  });
  assert.deepEqual([told?.temporality, told?.intervalMs], ["delta", 5_000]);
  assert.equal(told?.otlp.timeoutMs, 5_000, "an export ends before the next one");
  assert.equal(told?.resource["service.name"], "till");
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

test("what no export could be sent with is refused", () => {
  const refused = (env: Record<string, string>, message: RegExp) =>
    assert.throws(() => tracing({ ...endpoint, ...env }), message);
  refused({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://user:canary@otlp.example" }, /without a user/);
  for (const headers of ["a%20b=canary", "a=canary%0a", "a=%D1%8F"]) {
    refused({ OTEL_EXPORTER_OTLP_HEADERS: headers }, /of a header and its value/);
  }
  const noPem = import.meta.filename;
  refused({ OTEL_EXPORTER_OTLP_CERTIFICATE: noPem }, /got .*accepted is the path of a PEM file/);
  refused(
    { OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere/ca.pem" },
    /ca.pem cannot be read \(ENOENT\)/,
  );
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { readConfig } from "../../src/config/config.ts";
import { version } from "../../src/version.ts";

const metrics = (env: Record<string, string>) => readConfig(env).metrics;
const asked = { OTEL_METRICS_EXPORTER: "otlp" };

test("no metrics are sent until OTEL_METRICS_EXPORTER asks for it", () => {
  assert.equal(metrics({}), undefined);
  assert.equal(metrics({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" }), undefined);
  for (const exporter of ["none", "prometheus"]) {
    assert.equal(metrics({ OTEL_METRICS_EXPORTER: exporter }), undefined);
  }
  assert.equal(metrics({ ...asked, OTEL_SDK_DISABLED: "true" }), undefined);
  // A platform may set variables for all its programs: they are not checked while nothing is sent.
  assert.equal(metrics({ OTEL_METRIC_EXPORT_INTERVAL: "1m" }), undefined);
  assert.deepEqual(metrics(asked)?.exporters, ["otlp"]);
  const several = { OTEL_METRICS_EXPORTER: "prometheus, console,otlp" };
  assert.deepEqual(metrics(several)?.exporters, ["console", "otlp"]);
  assert.equal(readConfig(asked).tracing, undefined, "traces are asked for by themselves");
});

test("the variables decide where metrics are sent, how and how often", () => {
  assert.deepEqual(metrics(asked), {
    exporters: ["otlp"],
    otlp: {
      url: "http://localhost:4318/v1/metrics",
      headers: {},
      compression: "none",
      timeoutMs: 10_000,
      tls: {},
    },
    resource: { "service.name": "payments-gateway", "service.version": version },
    temporality: "cumulative",
    intervalMs: 60_000,
    timeoutMs: 30_000,
  });
  const common = {
    ...asked,
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://otlp.example/base/",
    OTEL_EXPORTER_OTLP_HEADERS: "x-a=1,x-b=2",
  };
  const own = metrics({
    ...common,
    OTEL_EXPORTER_OTLP_METRICS_HEADERS: "x-a=3",
    OTEL_EXPORTER_OTLP_METRICS_COMPRESSION: "gzip",
    OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE: "Delta",
    OTEL_METRIC_EXPORT_INTERVAL: "5000",
    OTEL_SERVICE_NAME: "till",
  });
  assert.equal(own?.otlp.url, "https://otlp.example/base/v1/metrics");
  assert.deepEqual(own?.otlp.headers, { "x-a": "3", "x-b": "2" });
  assert.equal(own?.otlp.compression, "gzip");
  assert.deepEqual([own?.temporality, own?.intervalMs, own?.timeoutMs], ["delta", 5_000, 5_000]);
  assert.equal(own?.resource["service.name"], "till");
  const endpoint = { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: "http://metrics:9/in" };
  assert.equal(metrics({ ...common, ...endpoint })?.otlp.url, "http://metrics:9/in");
});

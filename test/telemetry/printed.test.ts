import assert from "node:assert/strict";
import { test } from "node:test";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { createMetrics, expositionOf } from "../../src/telemetry/metrics.ts";

const labelNames = ["account", "code"] as const;
const unknown = { account: [], code: [] };
const series = [
  { account: "default", code: "OK" },
  { account: "default", code: "NOT_FOUND" },
  { account: 'with "quotes" and \\', code: "" },
];
const values = [0, 0.0005, 0.001, 0.00100001, 0.25, 1, 1.5, 61];

/** prom-client's own metrics of the process are not part of what is compared. */
function emptyMetrics() {
  const metrics = createMetrics();
  metrics.registry.clear();
  return metrics;
}

async function samplesOf({ registry }: ReturnType<typeof createMetrics>): Promise<string[]> {
  const lines = (await registry.metrics()).split("\n").filter((line) => /^\w/.test(line));
  return lines.map((line) => line.replace("payments_gateway_", ""));
}

test("metrics are printed exactly as prom-client's own", async () => {
  const metrics = emptyMetrics();
  const plain = new Registry();
  const of = (name: string) => {
    return { name: `payments_gateway_${name}`, help: "what it is", labelNames, registers: [plain] };
  };
  const buckets = [0.001, 0.25, 1, 60];
  const ours = {
    counter: metrics.counter("calls_total", "what it is", unknown),
    gauge: metrics.gauge("in_flight", "what it is", unknown),
    histogram: metrics.histogram("seconds", "what it is", unknown, buckets),
  };
  const theirs = {
    counter: new Counter(of("calls_total")),
    gauge: new Gauge(of("in_flight")),
    histogram: new Histogram({ ...of("seconds"), buckets }),
  };
  const printed = () => metrics.registry.metrics();
  assert.equal(await printed(), await plain.metrics(), "before anything is counted");
  for (const labels of series) {
    for (const value of values) {
      ours.counter.add(labels);
      theirs.counter.inc(labels);
      ours.gauge.add(labels, -value);
      theirs.gauge.dec(labels, value);
      ours.histogram.observe(labels, value * 1_000);
      theirs.histogram.observe(labels, value);
    }
  }
  assert.equal(await printed(), await plain.metrics());
  const inOpenMetrics = (registry: Registry) =>
    expositionOf(registry, "application/openmetrics-text");
  assert.deepEqual(await inOpenMetrics(metrics.registry), await inOpenMetrics(plain));
  assert.match(
    await printed(),
    /payments_gateway_seconds_bucket\{le="\+Inf",account="default",code="OK"\} 8/,
  );
});

test("what is known beforehand begins at 0, and an unknown number is not printed", async () => {
  const metrics = emptyMetrics();
  const accounts = ["a", "b"];
  metrics.counter("both_total", "both", { account: accounts, what: ["x", "y"] });
  metrics.counter("one_total", "one", { account: accounts, what: [] });
  metrics.gauge("none", "none", {});
  const known = metrics.gauge("known", "known", { account: accounts });
  known.set({ account: "a" }, undefined);
  known.set({ account: "b" }, 3);
  assert.deepEqual(await samplesOf(metrics), [
    ...['both_total{account="a",what="x"} 0', 'both_total{account="a",what="y"} 0'],
    ...['both_total{account="b",what="x"} 0', 'both_total{account="b",what="y"} 0'],
    ...["none 0", 'known{account="b"} 3'],
  ]);
});

test("the same labels are one series, whatever their order and what else there is", async () => {
  const metrics = emptyMetrics();
  const counter = metrics.counter("calls_total", "calls", unknown);
  counter.add({ account: "a", code: "b" });
  const more = { other: "o", code: "b", account: "a" };
  counter.add(more, 2);
  counter.add({ account: "b", code: "a" });
  counter.add({ account: "a" });
  assert.deepEqual(await samplesOf(metrics), [
    ...['calls_total{account="a",code="b"} 3', 'calls_total{account="b",code="a"} 1'],
    'calls_total{account="a",code=""} 1',
  ]);
});

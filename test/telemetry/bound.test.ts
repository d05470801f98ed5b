import assert from "node:assert/strict";
import { test } from "node:test";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { BoundCounter, BoundGauge, BoundHistogram, byKey } from "../../src/telemetry/bound.ts";
import { expositionOf } from "../../src/telemetry/exposition.ts";

const labelNames = ["account", "code"] as const;
const series = [
  { account: "default", code: "OK" },
  { account: "default", code: "NOT_FOUND" },
  { account: 'with "quotes" and \\', code: "" },
];
const values = [0, 0.0005, 0.001, 0.00100001, 0.25, 1, 1.5, 61];

test("bound metrics are printed exactly as prom-client's own", async () => {
  const [bound, plain] = [new Registry(), new Registry()];
  const config = { help: "what it is", labelNames };
  const buckets = [0.001, 0.25, 1, 60];
  const of = {
    bound: {
      counter: new BoundCounter({ name: "calls_total", ...config, registers: [bound] }),
      gauge: new BoundGauge({ name: "in_flight", ...config, registers: [bound] }),
      histogram: new BoundHistogram({ name: "seconds", ...config, buckets, registers: [bound] }),
    },
    plain: {
      counter: new Counter({ name: "calls_total", ...config, registers: [plain] }),
      gauge: new Gauge({ name: "in_flight", ...config, registers: [plain] }),
      histogram: new Histogram({ name: "seconds", ...config, buckets, registers: [plain] }),
    },
  };
  assert.equal(await bound.metrics(), await plain.metrics(), "before anything is counted");
  for (const labels of series) {
    for (const value of values) {
      of.bound.counter.bind(labels).value += 1;
      of.plain.counter.inc(labels);
      of.bound.gauge.bind(labels).value -= value;
      of.plain.gauge.dec(labels, value);
      of.bound.histogram.bind(labels).observe(value);
      of.plain.histogram.observe(labels, value);
    }
  }
  const printed = await bound.metrics();
  assert.equal(printed, await plain.metrics());
  const inOpenMetrics = (registry: Registry) =>
    expositionOf(registry, "application/openmetrics-text");
  assert.deepEqual(await inOpenMetrics(bound), await inOpenMetrics(plain));
  assert.match(printed, /seconds_bucket\{le="\+Inf",account="default",code="OK"\} 8/);
});

test("the same labels are bound to the same series, whatever their order", () => {
  const registers = [new Registry()];
  const counter = new BoundCounter({ name: "calls_total", help: "calls", labelNames, registers });
  const first = counter.bind({ account: "a", code: "b" });
  assert.equal(counter.bind({ code: "b", account: "a" }), first);
  assert.notEqual(counter.bind({ account: "b", code: "a" }), first);
});

test("byKey computes the value of each key once", () => {
  const made: string[] = [];
  const lengthOf = byKey((key: string) => made.push(key));
  assert.deepEqual([lengthOf("a"), lengthOf("b"), lengthOf("a")], [1, 2, 1]);
});

/**
 * Writes docs/metrics.md: every metric of `/metrics` with its labels and the alerts that read it,
 * from the code that creates the metrics.
 */

import { readFileSync, writeFileSync } from "node:fs";
import { parse } from "yaml";
import { edges } from "../../src/telemetry/edges.ts";
import { ledger } from "../../src/telemetry/ledger.ts";
import { createLogger } from "../../src/telemetry/log.ts";
import { createMetrics, type Metrics, type TelemetryContext } from "../../src/telemetry/metrics.ts";
import { processes } from "../../src/telemetry/process.ts";
import { createRepeatedLog } from "../../src/telemetry/repeated-log.ts";
import { scraped } from "../../src/telemetry/scraped.ts";
import { upstream } from "../../src/telemetry/upstream.ts";

interface Found {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  readonly labels: Readonly<Record<string, readonly string[]>>;
}

const account = "each account";
const alerts = alertsByExpression();
const real = createMetrics();
const areas: readonly (readonly [title: string, metrics: readonly Found[]])[] = [
  ["Calls, operations and streams", createdBy(edges)],
  ["The payments service and the rate budget", createdBy(upstream)],
  ["Callbacks, events and calls that move money", createdBy(ledger)],
  ["The process", createdBy(processes)],
  ["Read when the metrics are", createdBy(scraped)],
];

const text = [
  "<!-- made by `npm run generate` from src/telemetry; do not edit -->\n",
  "# Metrics\n",
  "What `/metrics` of the admin listener has, for Prometheus. [Operations](operations.md#metrics-alerts-traces-logs) says how to scrape it; the alerts are those of [`deploy/prometheus/alerts.yaml`](../deploy/prometheus/alerts.yaml).\n",
  "A label that lists its values has a series of each from the start, at 0; other series appear when something first happens. Durations are in seconds: a histogram has the series `_bucket`, `_sum` and `_count`. No label holds an id or a text that a caller sends.\n",
  "Beside these, `/metrics` has `prom-client`'s metrics of the process and of Node.js (`process_...`, `nodejs_...`), which depend on the system.\n",
  ...areas.flatMap(([title, metrics]) => [
    `## ${title}\n`,
    "| metric | type | meaning | labels | alerts |",
    "| --- | --- | --- | --- | --- |",
    ...metrics.map(row),
    "",
  ]),
].join("\n");
writeFileSync("docs/metrics.md", text);

/** What an area's code creates, in its order. */
function createdBy(area: (context: TelemetryContext) => unknown): Found[] {
  const found: Found[] = [];
  const note = (type: Found["type"], name: string, help: string, labels: Found["labels"]) =>
    found.push({ type, name: `payments_gateway_${name}`, help, labels });
  const metrics: Metrics = {
    ...real,
    counter(name, help, labels) {
      note("counter", name, help, labels);
      return real.counter(name, help, labels);
    },
    gauge(name, help, labels) {
      note("gauge", name, help, labels);
      return real.gauge(name, help, labels);
    },
    histogram(name, help, labels, buckets) {
      note("histogram", name, help, labels);
      return real.histogram(name, help, labels, buckets);
    },
  };
  const log = createLogger("silent");
  const repeated = createRepeatedLog(log.warn);
  area({ metrics, log, repeated, accounts: [account], durations: undefined });
  return found;
}

function row({ name, type, help, labels }: Found): string {
  const named = Object.entries(labels).map(([label, values]) => {
    const shown = values.map((value) => (value === account ? value : `\`${value}\``));
    return shown.length > 0 ? `\`${label}\`: ${shown.join(", ")}` : `\`${label}\``;
  });
  const read = new RegExp(`\\b${name}(?:_bucket|_sum|_count)?\\b`);
  const readers = alerts.filter(({ expr }) => read.test(expr)).map(({ alert }) => `\`${alert}\``);
  const cells = [`\`${name}\``, type, help, named.join("; "), [...new Set(readers)].join(", ")];
  return `| ${cells.join(" | ")} |`;
}

function alertsByExpression(): readonly { readonly alert: string; readonly expr: string }[] {
  const { groups } = parse(readFileSync("deploy/prometheus/alerts.yaml", "utf8"));
  return groups.flatMap(({ rules }: { rules: { alert?: string; expr: string }[] }) =>
    rules.filter(({ alert }) => alert !== undefined),
  );
}

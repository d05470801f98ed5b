import { collectDefaultMetrics, type Metric as PlainMetric, Registry } from "prom-client";
import type { Logger } from "../report.ts";
import type { RunningDurations } from "./sdk-durations.ts";

/** A metric's labels, each with the values that are known beforehand: those begin at 0. */
type Known<Label extends string> = Readonly<Record<Label, readonly string[]>>;

/** Label values must be few, since a series stays. An absent one is "". */
export type Labels<Label extends string> = { readonly [Name in Label]?: string | undefined };

export type Metrics = ReturnType<typeof createMetrics>;

/** What the areas are given. */
export interface TelemetryContext {
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Names of the merchant accounts. */
  readonly accounts: readonly string[];
  /** Set if durations are sent to a collector as well. */
  readonly durations: RunningDurations | undefined;
}

/**
 * The gateway's metrics beside prom-client's own of the process, which prints them all. Names are
 * given without their prefix, `payments_gateway_`.
 */
export function createMetrics() {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  // Gauges named like counters; the same numbers exist by type under names without `_total`.
  for (const kind of ["handles", "requests", "resources"]) {
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  }
  function add<Added extends Metric<string, unknown>>(metric: Added, labels: Known<string>): Added {
    registry.registerMetric(metric as unknown as PlainMetric);
    for (const zero of combinations(Object.entries(labels))) metric.at(zero);
    return metric;
  }
  return {
    registry,
    counter: <Label extends string>(name: string, help: string, labels: Known<Label>) =>
      add(new Numbers("counter", name, help, labels), labels),
    gauge: <Label extends string>(name: string, help: string, labels: Known<Label>) =>
      add(new Numbers("gauge", name, help, labels), labels),
    /** @param buckets upper bounds in seconds, in ascending order */
    histogram: <Label extends string>(
      name: string,
      help: string,
      labels: Known<Label>,
      buckets: readonly number[],
    ) => add(new Histogram(name, help, labels, buckets), labels),
  };
}

/** In seconds: from a read from memory to the longest time that the payments service may take. */
export const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

function combinations([first, ...others]: readonly [string, readonly string[]][]): object[] {
  if (!first) return [{}];
  const [name, values] = first;
  return values.flatMap((value) =>
    combinations(others).map((rest) => ({ [name]: value, ...rest })),
  );
}

/** One line of the exposition. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Default: the metric's name. */
  readonly metricName?: string;
  readonly exemplar?: object | undefined;
}

type MetricType = "counter" | "gauge" | "histogram";

/**
 * A metric as prom-client prints it. Its own metrics check and join the label values on every
 * update; here a series is found by one step per label.
 */
abstract class Metric<Label extends string, Series> {
  readonly type: MetricType;
  readonly name: string;
  // Not `#private` fields: `expositionOf` reads a metric through an object that inherits from it.
  private readonly help: string;
  private readonly labelNames: readonly Label[];
  /** The oldest first. */
  private readonly all: { labels: Readonly<Record<string, string>>; series: Series }[] = [];
  /**
   * Maps by the value of each label in turn, with the series at the end. The one series of a metric
   * without labels is at "".
   */
  private readonly tree = new Map<string, unknown>();

  constructor(type: MetricType, name: string, help: string, labels: Known<Label>) {
    this.type = type;
    this.name = `payments_gateway_${name}`;
    this.help = help;
    this.labelNames = Object.keys(labels) as Label[];
  }

  /** The series of these labels; it begins at 0. */
  at(labels: Labels<Label>): Series {
    const names = this.labelNames;
    let found: unknown = this.tree.get(labels[names[0] as Label] ?? "");
    for (let at = 1; at < names.length && found !== undefined; at++) {
      found = (found as Map<string, unknown>).get(labels[names[at] as Label] ?? "");
    }
    return found === undefined ? this.begin(labels) : (found as Series);
  }

  private begin(labels: Labels<Label>): Series {
    const series = this.create();
    const named = this.labelNames.map((name) => [name, labels[name] ?? ""] as const);
    this.all.push({ labels: Object.fromEntries(named), series });
    let node = this.tree;
    let [key = "", ...others] = named.map(([, value]) => value);
    for (const next of others) {
      const below = (node.get(key) ?? new Map()) as Map<string, unknown>;
      node.set(key, below);
      [node, key] = [below, next];
    }
    node.set(key, series);
    return series;
  }

  /** prom-client calls it to print the metric. */
  async get() {
    const { name, help, type } = this;
    const values = this.all.flatMap(({ labels, series }) => this.samples(labels, series));
    return { name, help, type, values, aggregator: "sum" };
  }

  protected abstract create(): Series;
  protected abstract samples(labels: Readonly<Record<string, string>>, series: Series): Sample[];
}

/** A counter or a gauge. */
class Numbers<Label extends string> extends Metric<Label, { value: number | undefined }> {
  add(labels: Labels<Label>, by = 1): void {
    const series = this.at(labels);
    series.value = (series.value ?? 0) + by;
  }

  /** Undefined: not known, so not printed. */
  set(labels: Labels<Label>, value: number | undefined): void {
    this.at(labels).value = value;
  }

  protected create(): { value: number | undefined } {
    return { value: 0 };
  }

  protected samples(labels: Readonly<Record<string, string>>, of: { value: number | undefined }) {
    return of.value === undefined ? [] : [{ labels, value: of.value }];
  }
}

/** Durations: given in milliseconds, printed in seconds. */
class Histogram<Label extends string> extends Metric<Label, Durations> {
  private readonly bounds: readonly number[];

  constructor(name: string, help: string, labels: Known<Label>, bounds: readonly number[]) {
    super("histogram", name, help, labels);
    this.bounds = bounds;
  }

  /** @param traceparent of the measured span, if it is sampled: the exemplar of the bucket */
  observe(labels: Labels<Label>, durationMs: number, traceparent?: string | undefined): void {
    const series = this.at(labels);
    const { counts, exemplars } = series;
    const { bounds } = this;
    const value = durationMs / 1_000;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    counts[at] = (counts[at] as number) + 1;
    series.sum += value;
    if (traceparent === undefined) return;
    const [, trace_id, span_id] = traceparent.split("-");
    exemplars[at] = { labelSet: { trace_id, span_id }, value, timestamp: Date.now() / 1_000 };
  }

  protected create(): Durations {
    return { counts: new Array<number>(this.bounds.length + 1).fill(0), sum: 0, exemplars: [] };
  }

  protected samples(labels: Readonly<Record<string, string>>, of: Durations): Sample[] {
    let count = 0;
    const buckets = of.counts.map((inBucket, at) => {
      count += inBucket;
      const le = this.bounds[at] ?? "+Inf";
      const exemplar = of.exemplars[at];
      return {
        labels: { le, ...labels },
        value: count,
        metricName: `${this.name}_bucket`,
        exemplar,
      };
    });
    return [
      ...buckets,
      { labels, value: of.sum, metricName: `${this.name}_sum` },
      { labels, value: count, metricName: `${this.name}_count` },
    ];
  }
}

/** Durations counted in buckets. */
interface Durations {
  /** By bucket; the last bucket has no upper bound. */
  readonly counts: number[];
  /** In seconds. */
  sum: number;
  /** The latest sampled trace that fell into each bucket: OpenMetrics prints it. */
  readonly exemplars: object[];
}

import { collectDefaultMetrics, type Metric, Registry } from "prom-client";
import type { Logger } from "../report.ts";
import type { RepeatedLog } from "./repeated-log.ts";
import type { RunningDurations } from "./sdk-durations.ts";

/** A metric's labels, each with the values that are known beforehand: those begin at 0. */
type Known<Label extends string> = Readonly<Record<Label, readonly string[]>>;

/** Label values must be few, since a series stays. An absent one is "". */
type Labels<Label extends string> = { readonly [Name in Label]?: string | undefined };

export type Metrics = ReturnType<typeof createMetrics>;

/** What the areas are given. */
export interface TelemetryContext {
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Warns of what may happen again and again. */
  readonly repeated: RepeatedLog;
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

  /**
   * Adds a metric as prom-client prints it. Its own metrics check and join the label values on every
   * update; here a series is found by one step per label.
   * @returns what gives the series of some labels, which begins at 0
   */
  function add<Label extends string, Series>(
    metric: { readonly type: string; readonly name: string; readonly help: string },
    labels: Known<Label>,
    create: () => Series,
    samplesOf: (series: Series, labels: PrintedLabels, name: string) => Sample[],
  ): (labels: Labels<Label>) => Series {
    const { all, at } = seriesBy(Object.keys(labels) as Label[], create);
    const printed = {
      ...metric,
      name: `payments_gateway_${metric.name}`,
      async get() {
        // Not the one above: prom-client changes it for OpenMetrics.
        const { name } = this;
        const values = all.flatMap(({ labels, series }) => samplesOf(series, labels, name));
        return { ...metric, name, values, aggregator: "sum" };
      },
    };
    registry.registerMetric(printed as unknown as Metric);
    for (const zero of combinations(Object.entries<readonly string[]>(labels))) at(zero);
    return at;
  }

  const numbers =
    (type: "counter" | "gauge") =>
    <Label extends string>(name: string, help: string, labels: Known<Label>) => {
      const zero = (): { value: number | undefined } => ({ value: 0 });
      const at = add({ type, name, help }, labels, zero, ({ value }, labels) =>
        value === undefined ? [] : [{ labels, value }],
      );
      return {
        add(labels: Labels<Label>, by = 1): void {
          const series = at(labels);
          series.value = (series.value ?? 0) + by;
        },
        /** Undefined: not known, so not printed. */
        set(labels: Labels<Label>, value: number | undefined): void {
          at(labels).value = value;
        },
      };
    };

  return {
    registry,
    counter: numbers("counter"),
    gauge: numbers("gauge"),
    /**
     * Durations: given in milliseconds, printed in seconds.
     * @param bounds upper bounds of the buckets in seconds, in ascending order. Default: from a read
     * from memory to the longest time that the payments service may take
     */
    histogram<Label extends string>(
      name: string,
      help: string,
      labels: Known<Label>,
      bounds: readonly number[] = latencyBuckets,
    ) {
      const zero = (): Durations => ({
        counts: new Array<number>(bounds.length + 1).fill(0),
        sum: 0,
        exemplars: [],
      });
      const at = add({ type: "histogram", name, help }, labels, zero, (series, labels, name) => {
        let count = 0;
        const buckets = series.counts.map((inBucket, at) => {
          count += inBucket;
          const of = { le: bounds[at] ?? "+Inf", ...labels };
          const exemplar = series.exemplars[at];
          return { labels: of, value: count, metricName: `${name}_bucket`, exemplar };
        });
        return [
          ...buckets,
          { labels, value: series.sum, metricName: `${name}_sum` },
          { labels, value: count, metricName: `${name}_count` },
        ];
      });
      return {
        /** @param traceparent of the measured span, if it is sampled: the exemplar of the bucket */
        observe(labels: Labels<Label>, durationMs: number, traceparent?: string): void {
          const series = at(labels);
          const value = durationMs / 1_000;
          let bucket = 0;
          while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
          series.counts[bucket] = (series.counts[bucket] as number) + 1;
          series.sum += value;
          if (traceparent === undefined) return;
          const [, trace_id, span_id] = traceparent.split("-");
          const labelSet = { trace_id, span_id };
          series.exemplars[bucket] = { labelSet, value, timestamp: Date.now() / 1_000 };
        },
      };
    },
  };
}

/**
 * All metrics, in OpenMetrics if the scraper accepts it (only that format has exemplars), else in
 * Prometheus's own text format.
 * @param accept the request's `Accept` header
 */
export async function expositionOf(
  registry: Registry,
  accept: string | undefined,
): Promise<{ contentType: string; text: string }> {
  const openMetrics = accept?.includes("application/openmetrics-text");
  const format = openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const view = new Registry();
  view.setContentType(format as typeof Registry.PROMETHEUS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    // For OpenMetrics prom-client strips `_total` from the object's `name` for good: pass a copy.
    view.registerMetric(Object.create(metric));
  }
  return { contentType: view.contentType, text: await view.metrics() };
}

const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

/** Metrics of one type with the same labels, by name. @param helps what each is, by name */
export function alike<Name extends string, Made>(
  make: (name: string, help: string) => Made,
  helps: Readonly<Record<Name, string>>,
): Readonly<Record<Name, Made>> {
  const made = Object.entries<string>(helps).map(([name, help]) => [name, make(name, help)]);
  return Object.fromEntries(made);
}

type PrintedLabels = Readonly<Record<string, string>>;

/** One line of the exposition. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Default: the metric's name. */
  readonly metricName?: string;
  readonly exemplar?: object | undefined;
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

function combinations([first, ...others]: readonly [string, readonly string[]][]): object[] {
  if (!first) return [{}];
  const [name, values] = first;
  return values.flatMap((value) =>
    combinations(others).map((rest) => ({ [name]: value, ...rest })),
  );
}

/** The series of a metric: `all`, the oldest first, and `at` these labels. */
function seriesBy<Label extends string, Series>(names: readonly Label[], create: () => Series) {
  const all: { readonly labels: PrintedLabels; readonly series: Series }[] = [];
  /** Maps by the value of each label in turn, with the series at the end. */
  const tree = new Map<string, unknown>();
  // The one series of a metric without labels is at "".
  const last = Math.max(names.length - 1, 0);

  function begin(labels: Labels<Label>): Series {
    const series = create();
    const named = names.map((name) => [name, labels[name] ?? ""] as const);
    all.push({ labels: Object.fromEntries(named), series });
    return series;
  }

  return {
    all,
    at(labels: Labels<Label>): Series {
      let node = tree;
      for (let depth = 0; ; depth++) {
        const value = labels[names[depth] as Label] ?? "";
        let below = node.get(value);
        if (below === undefined) {
          below = depth === last ? begin(labels) : new Map();
          node.set(value, below);
        }
        if (depth === last) return below as Series;
        node = below as Map<string, unknown>;
      }
    },
  };
}

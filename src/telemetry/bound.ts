import type { Metric, Registry } from "prom-client";

/** What a metric is called, and the names of its labels. */
export interface BoundConfig<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: readonly Label[];
  readonly registers: readonly Registry[];
}

export type Labels<Label extends string> = Readonly<Record<Label, string>>;

/** One line of the exposition. */
interface Sample {
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
  /** Default: the metric's own. */
  readonly metricName?: string;
}

/**
 * A metric that every call moves. Its labels are bound once: prom-client, which prints it with all
 * others, checks and joins the texts of the labels each time that it counts.
 */
abstract class BoundMetric<Label extends string, Series> {
  abstract readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  // Found through objects that inherit from a metric, too: so OpenMetrics gives it another name.
  private readonly labelNames: readonly Label[];
  private readonly all = new Map<
    string,
    { readonly labels: Labels<Label>; readonly series: Series }
  >();

  constructor({ name, help, labelNames, registers }: BoundConfig<Label>) {
    this.name = name;
    this.help = help;
    this.labelNames = labelNames;
    for (const registry of registers) registry.registerMetric(this as unknown as Metric);
  }

  /** The series of these labels, which is 0 from then on. Only labels whose values are few. */
  bind(labels: Labels<Label>): Series {
    const key = JSON.stringify(this.labelNames.map((name) => labels[name]));
    let known = this.all.get(key);
    if (!known) {
      known = { labels, series: this.create() };
      this.all.set(key, known);
    }
    return known.series;
  }

  /** What prom-client prints. */
  async get() {
    const { name, help, type } = this;
    const all = [...this.all.values()];
    const values = all.flatMap(({ labels, series }) => this.samples(labels, series));
    return { name, help, type, values, aggregator: "sum" };
  }

  protected abstract create(): Series;
  protected abstract samples(labels: Labels<Label>, series: Series): Sample[];
}

/** A number that calls move themselves. */
export interface BoundValue {
  value: number;
}

/** Only ever add to its values. */
export class BoundCounter<Label extends string> extends BoundMetric<Label, BoundValue> {
  readonly type = "counter";

  protected create(): BoundValue {
    return { value: 0 };
  }

  protected samples(labels: Labels<Label>, { value }: BoundValue): Sample[] {
    return [{ labels, value }];
  }
}

export class BoundGauge<Label extends string> extends BoundMetric<Label, BoundValue> {
  readonly type = "gauge";

  protected create(): BoundValue {
    return { value: 0 };
  }

  protected samples(labels: Labels<Label>, { value }: BoundValue): Sample[] {
    return [{ labels, value }];
  }
}

export class BoundHistogram<Label extends string> extends BoundMetric<Label, Observations> {
  readonly type = "histogram";
  private readonly bounds: readonly number[];

  /** @param buckets upper bounds, in ascending order */
  constructor(config: BoundConfig<Label> & { readonly buckets: readonly number[] }) {
    super(config);
    this.bounds = config.buckets;
  }

  protected create(): Observations {
    return new Observations(this.bounds);
  }

  protected samples(labels: Labels<Label>, { counts, sum }: Observations): Sample[] {
    let count = 0;
    const buckets = counts.map((inBucket, at) => {
      count += inBucket;
      const le = this.bounds[at] ?? "+Inf";
      return { labels: { le, ...labels }, value: count, metricName: `${this.name}_bucket` };
    });
    return [
      ...buckets,
      { labels, value: sum, metricName: `${this.name}_sum` },
      { labels, value: count, metricName: `${this.name}_count` },
    ];
  }
}

class Observations {
  /** By bucket, the last of which has no bound. */
  readonly counts: number[];
  sum = 0;
  readonly #bounds: readonly number[];

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.counts = new Array<number>(bounds.length + 1).fill(0);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] as number)) at++;
    this.counts[at] = (this.counts[at] as number) + 1;
    this.sum += value;
  }
}

/** Makes the value of a key when it is first asked for, for keys that are few. */
export function byKey<Key, Value>(make: (key: Key) => Value): (key: Key) => Value {
  const known = new Map<Key, Value>();
  return (key) => {
    let value = known.get(key);
    if (value === undefined) {
      value = make(key);
      known.set(key, value);
    }
    return value;
  };
}

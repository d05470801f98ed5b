import type { Metric, Registry } from "prom-client";

/** A metric's name, help text and label names. */
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
  /** Default: the metric's name. */
  readonly metricName?: string;
}

/**
 * A metric that every call updates. Its labels are bound once: prom-client's own metrics check and
 * join the label values on every update. prom-client prints it with all others.
 */
abstract class BoundMetric<Label extends string, Series> {
  abstract readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  // Not `#private` fields: `expositionOf` reads a metric through an object that inherits from it.
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

  /** The series of these labels, 0 from its first use on. It stays, so label values must be few. */
  bind(labels: Labels<Label>): Series {
    const key = JSON.stringify(this.labelNames.map((name) => labels[name]));
    let known = this.all.get(key);
    if (!known) {
      known = { labels, series: this.create() };
      this.all.set(key, known);
    }
    return known.series;
  }

  /** prom-client calls it to print the metric. */
  async get() {
    const { name, help, type } = this;
    const all = [...this.all.values()];
    const values = all.flatMap(({ labels, series }) => this.samples(labels, series));
    return { name, help, type, values, aggregator: "sum" };
  }

  protected abstract create(): Series;
  protected abstract samples(labels: Labels<Label>, series: Series): Sample[];
}

/** A number that the measured code changes directly. */
export interface BoundValue {
  value: number;
}

/** Callers may only increase its values. */
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
  /** Observations by bucket; the last bucket has no upper bound. */
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

/** Creates the value of a key at its first use and keeps it; keys must be few. */
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

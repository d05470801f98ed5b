import { Histogram, type Registry } from "prom-client";
import { type BoundConfig, BoundHistogram, type Labels } from "./bound.ts";

/** Creates a histogram of durations in one registry. */
export type DurationHistograms = <Label extends string>(
  options: DurationOptions<Label>,
) => DurationHistogram<Label>;

type DurationOptions<Label extends string> = Omit<BoundConfig<Label>, "registers"> & {
  readonly buckets: readonly number[];
};

export interface DurationHistogram<Label extends string> {
  /** A function that records durations under these labels; label values must be few. */
  bind(labels: Labels<Label>): ObserveDuration;
}

/** @param traceparent of the measured span, if it is sampled: the exemplar of the bucket */
export type ObserveDuration = (durationMs: number, traceparent?: string | undefined) => void;

/**
 * Creates histograms that record milliseconds and report seconds. With `exemplars` each bucket
 * names the latest sampled trace that fell into it, in the OpenMetrics format only.
 */
export function durationHistograms(registry: Registry, exemplars: boolean): DurationHistograms {
  return exemplars ? withExemplars(registry) : withoutExemplars(registry);
}

function withoutExemplars(registry: Registry): DurationHistograms {
  return (options) => {
    const histogram = new BoundHistogram({ ...options, registers: [registry] });
    return {
      bind(labels) {
        const series = histogram.bind(labels);
        return (durationMs) => series.observe(durationMs / 1_000);
      },
    };
  };
}

function withExemplars(registry: Registry): DurationHistograms {
  return (options) => {
    const buckets = [...options.buckets];
    const config = { ...options, buckets, enableExemplars: true, registers: [registry] };
    const histogram = new Histogram(config);
    return {
      bind: (labels) => (durationMs, traceparent) => {
        const value = durationMs / 1_000;
        const [, trace_id, span_id] = traceparent?.split("-") ?? [];
        const exemplarLabels = trace_id && span_id ? { trace_id, span_id } : {};
        histogram.observe({ labels, value, exemplarLabels } as never);
      },
    };
  };
}

import { Histogram, type HistogramConfiguration, type Registry } from "prom-client";

/** Histograms of durations of one registry. */
export type DurationHistograms = <Label extends string>(
  options: Pick<HistogramConfiguration<Label>, "name" | "help" | "labelNames" | "buckets">,
) => ObserveDuration<Label>;

/** @param traceparent of the sampled span that lasted as long: the exemplar of its bucket */
export type ObserveDuration<Label extends string> = (
  labels: Partial<Record<Label, string | number>>,
  durationMs: number,
  traceparent?: string | undefined,
) => void;

/**
 * Makes histograms of durations in seconds. With `exemplars` each bucket names the latest sampled trace
 * that fell into it, for those who read OpenMetrics.
 */
export function durationHistograms(registry: Registry, exemplars: boolean): DurationHistograms {
  return (options) => {
    const enableExemplars = exemplars;
    const histogram = new Histogram({ ...options, enableExemplars, registers: [registry] });
    if (!exemplars) {
      return (labels, durationMs) => histogram.observe(labels as never, durationMs / 1_000);
    }
    return (labels, durationMs, traceparent) => {
      const value = durationMs / 1_000;
      const [, trace_id, span_id] = traceparent?.split("-") ?? [];
      const exemplarLabels = trace_id && span_id ? { trace_id, span_id } : {};
      histogram.observe({ labels, value, exemplarLabels } as never);
    };
  };
}

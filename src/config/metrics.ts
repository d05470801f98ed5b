import { z } from "zod";
import type { DurationsSettings } from "../telemetry/durations/settings.ts";
import {
  isSdkDisabled,
  milliseconds,
  names,
  type ReadOptional,
  readOtlp,
  readResource,
} from "./opentelemetry.ts";

/**
 * How metrics are sent to a collector, by the OTEL_* variables; undefined when they are not. Only
 * OTEL_METRICS_EXPORTER turns it on: an endpoint alone turns on traces, since Prometheus may read
 * the metrics already.
 */
export function readMetrics(optional: ReadOptional): DurationsSettings | undefined {
  if (isSdkDisabled(optional)) return undefined;
  // `prometheus` needs no exporter: /metrics serves it anyway.
  const exporters = (optional("OTEL_METRICS_EXPORTER", exporterNames) ?? []).filter(
    (name) => name !== "prometheus",
  );
  if (exporters.length === 0) return undefined;
  const intervalMs = optional("OTEL_METRIC_EXPORT_INTERVAL", milliseconds) ?? 60_000;
  const timeoutMs = optional("OTEL_METRIC_EXPORT_TIMEOUT", milliseconds) ?? 30_000;
  return {
    exporters,
    otlp: readOtlp(optional, "METRICS"),
    resource: readResource(optional),
    temporality:
      optional("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", temporality) ?? "cumulative",
    intervalMs,
    // An export that lasts longer would overlap the next one.
    timeoutMs: Math.min(timeoutMs, intervalMs),
  };
}

const exporterNames = names("otlp", "console", "prometheus");

/** `lowmemory` differs from `delta` only in kinds of metrics that are not sent here. */
const temporality = z
  .string()
  .refine((text) => /^(cumulative|delta|lowmemory)$/i.test(text), "cumulative, delta or lowmemory")
  .transform((text) => (text.toLowerCase() === "cumulative" ? "cumulative" : "delta"));

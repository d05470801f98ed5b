import type {
  DurationsSettings,
  OtlpSettings,
  TracingSettings,
} from "../telemetry/tracing/settings.ts";
import { version } from "../version.ts";
import { type Values, withMetrics, withTraces } from "./variables.ts";

/**
 * Tracing as the OTEL_* variables set it; undefined when they do not turn it on. Their specification
 * wants unusable values ignored; here they are refused, so that nobody waits for traces that never
 * come.
 */
export function tracingOf(values: Values): TracingSettings | undefined {
  if (!withTraces(values)) return undefined;
  const sampler = values.OTEL_TRACES_SAMPLER;
  const categories = values.OTEL_SEMCONV_STABILITY_OPT_IN ?? [];
  return {
    otlp: otlpOf(values, "TRACES"),
    resource: resourceOf(values),
    sampler: {
      parentBased: sampler.startsWith("parentbased_"),
      ratio: sampler.endsWith("always_off") ? 0 : (values.OTEL_TRACES_SAMPLER_ARG ?? 1),
    },
    oldNames: (["http", "rpc", "graphql"] as const).filter((category) =>
      categories.includes(`${category}/dup`),
    ),
    batch: {
      delayMs: values.OTEL_BSP_SCHEDULE_DELAY,
      maxQueue: values.OTEL_BSP_MAX_QUEUE_SIZE,
    },
  };
}

/**
 * How metrics are sent to a collector; undefined when they are not. Only OTEL_METRICS_EXPORTER turns
 * it on: an endpoint alone turns on traces, since Prometheus may read the metrics already.
 */
export function metricsOf(values: Values): DurationsSettings | undefined {
  if (!withMetrics(values)) return undefined;
  const intervalMs = values.OTEL_METRIC_EXPORT_INTERVAL;
  const otlp = otlpOf(values, "METRICS");
  return {
    // An export that lasts longer would overlap the next one.
    otlp: { ...otlp, timeoutMs: Math.min(otlp.timeoutMs, intervalMs) },
    resource: resourceOf(values),
    temporality: values.OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE,
    intervalMs,
  };
}

/** How a signal is sent: to its own address, else to the one of all signals. */
function otlpOf(values: Values, signal: "TRACES" | "METRICS"): OtlpSettings {
  const base = values.OTEL_EXPORTER_OTLP_ENDPOINT ?? "http://localhost:4318";
  const path = `/v1/${signal.toLowerCase()}`;
  const { OTEL_EXPORTER_OTLP_CERTIFICATE: ca, OTEL_EXPORTER_OTLP_CLIENT_KEY: key } = values;
  const cert = values.OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE;
  return {
    url: values[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] ?? base.replace(/(?<!\/)\/+$/, "") + path,
    headers: values.OTEL_EXPORTER_OTLP_HEADERS,
    compression: values.OTEL_EXPORTER_OTLP_COMPRESSION,
    timeoutMs: values.OTEL_EXPORTER_OTLP_TIMEOUT,
    tls: { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) },
  };
}

/** The resource attributes of all telemetry. */
function resourceOf(values: Values): Readonly<Record<string, string>> {
  const name = values.OTEL_SERVICE_NAME;
  return {
    "service.name": "payments-gateway",
    "service.version": version,
    ...values.OTEL_RESOURCE_ATTRIBUTES,
    ...(name && { "service.name": name }),
  };
}

import type {
  DurationsSettings,
  OtlpSettings,
  TracingSettings,
} from "../telemetry/tracing/settings.ts";
import { version } from "../version.ts";
import { type OtlpName, type Values, withMetrics, withTraces } from "./variables.ts";

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
    propagators: values.OTEL_PROPAGATORS,
    batch: {
      delayMs: values.OTEL_BSP_SCHEDULE_DELAY,
      timeoutMs: values.OTEL_BSP_EXPORT_TIMEOUT,
      maxQueue: values.OTEL_BSP_MAX_QUEUE_SIZE,
      maxBatch: values.OTEL_BSP_MAX_EXPORT_BATCH_SIZE,
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
  return {
    otlp: otlpOf(values, "METRICS"),
    resource: resourceOf(values),
    temporality: values.OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE,
    intervalMs,
    // An export that lasts longer would overlap the next one.
    timeoutMs: Math.min(values.OTEL_METRIC_EXPORT_TIMEOUT, intervalMs),
  };
}

/** How a signal is sent: by its own variables, else by those of all signals. */
function otlpOf(values: Values, signal: "TRACES" | "METRICS"): OtlpSettings {
  const own = <Of extends OtlpName>(name: Of) =>
    values[`OTEL_EXPORTER_OTLP_${signal}_${name}`] ?? values[`OTEL_EXPORTER_OTLP_${name}`];
  const base = values.OTEL_EXPORTER_OTLP_ENDPOINT ?? "http://localhost:4318";
  const path = `/v1/${signal.toLowerCase()}`;
  const [ca, cert, key] = [own("CERTIFICATE"), own("CLIENT_CERTIFICATE"), own("CLIENT_KEY")];
  return {
    url: values[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`] ?? base.replace(/(?<!\/)\/+$/, "") + path,
    headers: {
      ...values.OTEL_EXPORTER_OTLP_HEADERS,
      ...values[`OTEL_EXPORTER_OTLP_${signal}_HEADERS`],
    },
    compression: own("COMPRESSION") ?? "none",
    timeoutMs: own("TIMEOUT") ?? 10_000,
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

import { ProtobufMetricsSerializer } from "@opentelemetry/otlp-transformer";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AggregationTemporality,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import type { Report } from "../report.ts";
import { version } from "../version.ts";
import type { Attributes } from "./tracing/attributes.ts";
import { createOtlpExporter, shutDown } from "./tracing/otlp-exporter.ts";
import type { DurationsSettings } from "./tracing/settings.ts";

export type RunningDurations = ReturnType<typeof startSdkDurations>;

/**
 * Records durations by OpenTelemetry's semantic conventions and sends them to a collector, beside
 * the metrics that Prometheus reads. Attribute values are few and known beforehand. Registers
 * nothing globally: several may run in one process.
 */
export function startSdkDurations(settings: DurationsSettings, report: Report) {
  const { otlp, temporality, intervalMs } = settings;
  const provider = new MeterProvider({
    resource: defaultResource().merge(resourceFromAttributes(settings.resource)),
    readers: [
      new PeriodicExportingMetricReader({
        exporter: {
          ...createOtlpExporter(otlp, ProtobufMetricsSerializer, "metric", report),
          selectAggregationTemporality: () =>
            AggregationTemporality[temporality.toUpperCase() as Uppercase<typeof temporality>],
        },
        exportIntervalMillis: intervalMs,
        exportTimeoutMillis: otlp.timeoutMs,
      }),
    ],
  });
  const meter = provider.getMeter("payments-gateway", version);
  const histogram = (name: string, description: string) => {
    const options = { description, unit: "s", advice: { explicitBucketBoundaries: boundaries } };
    const recorded = meter.createHistogram(name, options);
    return (durationMs: number, attributes: Attributes) =>
      recorded.record(durationMs / 1_000, definedOf(attributes));
  };
  return {
    rpcServerCall: histogram("rpc.server.call.duration", "Duration of incoming RPCs"),
    httpServerRequest: histogram("http.server.request.duration", "Duration of HTTP requests"),
    /** Sends what is recorded, within `timeoutMs`. Never rejects. */
    shutdown: (timeoutMs: number) => shutDown(provider, timeoutMs),
  };
}

/** Without undefined attributes: the SDK would send them as empty values. */
function definedOf(attributes: Attributes): Record<string, string | number> {
  const defined = Object.entries(attributes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(defined) as Record<string, string | number>;
}

/** Bucket bounds in seconds, as the conventions advise. */
const boundaries = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

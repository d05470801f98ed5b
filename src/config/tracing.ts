import { z } from "zod";
import type { TracingSettings } from "../telemetry/tracing/settings.ts";
import {
  hasEndpoint,
  isSdkDisabled,
  milliseconds,
  names,
  type ReadOptional,
  readOtlp,
  readResource,
} from "./opentelemetry.ts";
import { wholeNumber } from "./values.ts";

/**
 * Tracing as OpenTelemetry's OTEL_* variables set it; undefined when they do not turn it on. Their
 * specification wants unusable values ignored; here they are refused, so that nobody waits for
 * traces that never come.
 */
export function readTracing(optional: ReadOptional): TracingSettings | undefined {
  if (isSdkDisabled(optional)) return undefined;
  const hasCollector = hasEndpoint(optional, "TRACES");
  const exporters =
    optional("OTEL_TRACES_EXPORTER", exporterNames) ?? (hasCollector ? ["otlp" as const] : []);
  if (exporters.length === 0) return undefined;

  const sampler = optional("OTEL_TRACES_SAMPLER", samplerName) ?? "parentbased_always_on";
  const ratio = sampler.endsWith("ratio") ? optional("OTEL_TRACES_SAMPLER_ARG", share) : undefined;
  const optIn = optional("OTEL_SEMCONV_STABILITY_OPT_IN", categories) ?? [];
  return {
    exporters,
    otlp: readOtlp(optional, "TRACES"),
    resource: readResource(optional),
    sampler: {
      parentBased: sampler.startsWith("parentbased_"),
      ratio: sampler.endsWith("always_off") ? 0 : (ratio ?? 1),
    },
    oldNames: oldNameCategories.filter((category) => optIn.includes(`${category}/dup`)),
    // No baggage by default: it is free text of callers, and would reach the payments service.
    propagators: optional("OTEL_PROPAGATORS", propagatorNames) ?? ["tracecontext"],
    batch: {
      delayMs: optional("OTEL_BSP_SCHEDULE_DELAY", milliseconds) ?? 5_000,
      timeoutMs: optional("OTEL_BSP_EXPORT_TIMEOUT", milliseconds) ?? 30_000,
      maxQueue: optional("OTEL_BSP_MAX_QUEUE_SIZE", wholeNumber(1, 1_000_000)) ?? 2_048,
      maxBatch: optional("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", wholeNumber(1, 100_000)) ?? 512,
    },
  };
}

const share = z
  .string()
  .refine((text) => /^(0|1|0?\.\d+|1\.0+|0\.\d+)$/.test(text), "a share from 0 to 1, such as 0.1")
  .transform(Number);

const samplerName = z
  .string()
  .regex(
    /^(parentbased_)?(always_on|always_off|traceidratio)$/,
    "always_on, always_off or traceidratio, or one of them behind parentbased_",
  );

/** The variable is for all libraries of a process: unknown categories are ignored. */
const categories = z
  .string()
  .regex(
    /^ *[a-z_]+(?:\/dup)? *(?:, *[a-z_]+(?:\/dup)? *)*$/,
    "categories joined by commas, such as rpc/dup",
  )
  .transform((text) => text.split(",").map((name) => name.trim()));

const oldNameCategories = ["http", "rpc", "graphql"] as const;

const exporterNames = names("otlp", "console");
const propagatorNames = names("tracecontext", "baggage");

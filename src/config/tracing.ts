import { readFileSync } from "node:fs";
import { z } from "zod";
import type { TracingSettings } from "../telemetry/tracing/settings.ts";
import { version } from "../version.ts";
import { boolean, wholeNumber } from "./values.ts";

/** A variable of the environment that is set and not empty, read by a schema. */
export type ReadOptional = <T>(variable: string, schema: z.ZodType<T, string>) => T | undefined;

/**
 * Tracing as the OTEL_* variables of OpenTelemetry say it; undefined when they do not ask for it. Unlike
 * their specification wants it, a value that cannot be used is refused and not ignored: then nobody
 * looks for traces that never come.
 */
export function readTracing(optional: ReadOptional): TracingSettings | undefined {
  if (optional("OTEL_SDK_DISABLED", boolean)) return undefined;
  const own = (name: string) => `OTEL_EXPORTER_OTLP_TRACES_${name}`;
  const common = (name: string) => `OTEL_EXPORTER_OTLP_${name}`;
  const either = <T>(name: string, schema: z.ZodType<T, string>) => {
    const ofAll = optional(common(name), schema);
    return optional(own(name), schema) ?? ofAll;
  };

  const tracesUrl = optional(own("ENDPOINT"), collectorUrl);
  const baseUrl = optional(common("ENDPOINT"), collectorUrl);
  const exporters =
    optional("OTEL_TRACES_EXPORTER", exporterNames) ??
    (tracesUrl === undefined && baseUrl === undefined ? [] : ["otlp" as const]);
  if (exporters.length === 0) return undefined;

  either("PROTOCOL", protocol);
  const ofAll = optional(common("HEADERS"), pairs);
  const serviceName = optional("OTEL_SERVICE_NAME", z.string());
  const sampler = optional("OTEL_TRACES_SAMPLER", samplerName) ?? "parentbased_always_on";
  const ratio = sampler.endsWith("ratio") ? optional("OTEL_TRACES_SAMPLER_ARG", share) : undefined;
  const ca = either("CERTIFICATE", pem);
  const cert = either("CLIENT_CERTIFICATE", pem);
  const key = either("CLIENT_KEY", pem);
  return {
    exporters,
    otlp: {
      url:
        tracesUrl ?? `${(baseUrl ?? "http://localhost:4318").replace(/(?<!\/)\/+$/, "")}/v1/traces`,
      headers: { ...ofAll, ...optional(own("HEADERS"), pairs) },
      compression: either("COMPRESSION", compression) ?? "none",
      timeoutMs: either("TIMEOUT", milliseconds) ?? 10_000,
      tls: {
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      },
    },
    resource: {
      "service.name": "payments-gateway",
      "service.version": version,
      ...optional("OTEL_RESOURCE_ATTRIBUTES", pairs),
      ...(serviceName === undefined ? {} : { "service.name": serviceName }),
    },
    sampler: {
      parentBased: sampler.startsWith("parentbased_"),
      ratio: sampler.endsWith("always_off") ? 0 : (ratio ?? 1),
    },
    oldNames: optional("OTEL_SEMCONV_STABILITY_OPT_IN", categories)?.includes("rpc/dup") ?? false,
    // Baggage is whatever callers say, and the payments service is somebody else's.
    propagators: optional("OTEL_PROPAGATORS", propagatorNames) ?? ["tracecontext"],
    batch: {
      delayMs: optional("OTEL_BSP_SCHEDULE_DELAY", milliseconds) ?? 5_000,
      timeoutMs: optional("OTEL_BSP_EXPORT_TIMEOUT", milliseconds) ?? 30_000,
      maxQueue: optional("OTEL_BSP_MAX_QUEUE_SIZE", wholeNumber(1, 1_000_000)) ?? 2_048,
      maxBatch: optional("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", wholeNumber(1, 100_000)) ?? 512,
    },
  };
}

const collectorUrl = z
  .string()
  .refine(
    (text) => /^https?:$/.test(URL.parse(text)?.protocol ?? ""),
    "an http or https URL of a collector, such as http://localhost:4318",
  );

const protocol = z
  .string()
  .regex(/^http\/protobuf$/, "http/protobuf, the one protocol that is spoken here");

const compression = z.enum(["none", "gzip"], "none or gzip") as z.ZodType<"none" | "gzip", string>;

const milliseconds = wholeNumber(1, 999_999_999);

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

/** Of each of the process's libraries: what is not ours is for others. */
const categories = z
  .string()
  .regex(
    /^ *[a-z_]+(?:\/dup)? *(?:, *[a-z_]+(?:\/dup)? *)*$/,
    "categories joined by commas, such as rpc/dup",
  )
  .transform((text) => text.split(",").map((name) => name.trim()));

/** Names joined by commas; `none` stands for no names. */
function names<const Name extends string>(...known: readonly Name[]) {
  return z.string().transform((text, context): readonly Name[] => {
    const given = [...new Set(text.split(",").map((name) => name.trim()))];
    if (given.join() === "none") return [];
    if (given.every((name): name is Name => known.includes(name as Name))) return given;
    context.addIssue(`none, or ${known.join(", ")} joined by commas`);
    return z.NEVER;
  });
}

const exporterNames = names("otlp", "console");
const propagatorNames = names("tracecontext", "baggage");

/** `key=value,key=value`, percent-encoded. */
const pairs = z.string().transform((text, context): Record<string, string> => {
  const found: Record<string, string> = {};
  for (const pair of text.split(",").filter((part) => part.trim() !== "")) {
    const match = /^\s*([^=\s]+)\s*=(.*)$/s.exec(pair);
    const value = match && decoded(match[2]?.trim() ?? "");
    const key = match && decoded(match[1] ?? "");
    if (typeof key !== "string" || typeof value !== "string") {
      context.addIssue("key=value pairs joined by commas, percent-encoded");
      return z.NEVER;
    }
    found[key] = value;
  }
  return found;
});

function decoded(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}

const pem = z.string().transform((path, context): string => {
  try {
    return readFileSync(path, "utf8");
  } catch {
    context.addIssue("the path of a PEM file that can be read");
    return z.NEVER;
  }
});

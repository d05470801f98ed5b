import { readFileSync } from "node:fs";
import { z } from "zod";
import type { OtlpSettings } from "../telemetry/tracing/settings.ts";
import { version } from "../version.ts";
import { boolean, wholeNumber } from "./values.ts";

/** Reads an environment variable by a schema; undefined when it is unset or empty. */
export type ReadOptional = <T>(variable: string, schema: z.ZodType<T, string>) => T | undefined;

/** Whether all OpenTelemetry exports are turned off. */
export function isSdkDisabled(optional: ReadOptional): boolean {
  return optional("OTEL_SDK_DISABLED", boolean) ?? false;
}

/** Whether a collector's endpoint is set for this signal, or for all signals. */
export function hasEndpoint(optional: ReadOptional, signal: Signal): boolean {
  return [`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`, "OTEL_EXPORTER_OTLP_ENDPOINT"]
    .map((variable) => optional(variable, collectorUrl))
    .some((url) => url !== undefined);
}

export type Signal = "TRACES" | "METRICS";

/** How a signal is sent: by its own variables, else by those of all signals. */
export function readOtlp(optional: ReadOptional, signal: Signal): OtlpSettings {
  const own = (name: string) => `OTEL_EXPORTER_OTLP_${signal}_${name}`;
  const common = (name: string) => `OTEL_EXPORTER_OTLP_${name}`;
  const either = <T>(name: string, schema: z.ZodType<T, string>) => {
    const ofAll = optional(common(name), schema);
    return optional(own(name), schema) ?? ofAll;
  };
  either("PROTOCOL", protocol);
  const baseUrl = optional(common("ENDPOINT"), collectorUrl) ?? "http://localhost:4318";
  const path = `/v1/${signal.toLowerCase()}`;
  const ofAll = optional(common("HEADERS"), pairs);
  const ca = either("CERTIFICATE", pem);
  const cert = either("CLIENT_CERTIFICATE", pem);
  const key = either("CLIENT_KEY", pem);
  return {
    url: optional(own("ENDPOINT"), collectorUrl) ?? baseUrl.replace(/(?<!\/)\/+$/, "") + path,
    headers: { ...ofAll, ...optional(own("HEADERS"), pairs) },
    compression: either("COMPRESSION", compression) ?? "none",
    timeoutMs: either("TIMEOUT", milliseconds) ?? 10_000,
    tls: {
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert }),
      ...(key === undefined ? {} : { key }),
    },
  };
}

/** The resource attributes of all telemetry. */
export function readResource(optional: ReadOptional): Readonly<Record<string, string>> {
  const serviceName = optional("OTEL_SERVICE_NAME", z.string());
  return {
    "service.name": "payments-gateway",
    "service.version": version,
    ...optional("OTEL_RESOURCE_ATTRIBUTES", pairs),
    ...(serviceName === undefined ? {} : { "service.name": serviceName }),
  };
}

/** A schema for names joined by commas; `none` stands for no names. */
export function names<const Name extends string>(...known: readonly Name[]) {
  return z.string().transform((text, context): readonly Name[] => {
    const given = [...new Set(text.split(",").map((name) => name.trim()))];
    if (given.join() === "none") return [];
    if (given.every((name): name is Name => known.includes(name as Name))) return given;
    context.addIssue(`none, or ${known.join(", ")} joined by commas`);
    return z.NEVER;
  });
}

export const milliseconds = wholeNumber(1, 999_999_999);

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

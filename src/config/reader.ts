import type { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { type Environment, textOf } from "./variable.ts";

/** Reads variables by their schemas. Each method throws ConfigError for a wrong value. */
export interface Reader {
  /** Reads a variable that must be set, or has a default. */
  <T>(variable: string, schema: z.ZodType<T, string>, fallback?: string): T;
  optional<T>(variable: string, schema: z.ZodType<T, string>): T | undefined;
  /** An object with the value as its member `key`; an empty one when the variable is not set. */
  some<K extends string, T>(
    key: K,
    variable: string,
    schema: z.ZodType<T, string>,
  ): { [P in K]?: T };
}

export function reader(env: Environment): Reader {
  const parse = <T>(variable: string, schema: z.ZodType<T, string>, text: string): T => {
    const result = schema.safeParse(text);
    if (result.success) return result.data;
    const accepted = result.error.issues.map((issue) => issue.message).join("; ");
    const got = isSecret(variable) ? "a value that is not shown" : JSON.stringify(text);
    throw new ConfigError(variable, `got ${got}, accepted is ${accepted}`);
  };
  const optional = <T>(variable: string, schema: z.ZodType<T, string>): T | undefined => {
    const text = textOf(env, variable);
    return text === undefined ? undefined : parse(variable, schema, text);
  };
  const read = <T>(variable: string, schema: z.ZodType<T, string>, fallback?: string): T => {
    const text = textOf(env, variable) ?? fallback;
    if (text !== undefined) return parse(variable, schema, text);
    const probe = schema.safeParse("");
    const accepted = probe.success
      ? "a value"
      : probe.error.issues.map((i) => i.message).join("; ");
    throw new ConfigError(variable, `is missing, accepted is ${accepted}`);
  };
  const some = <K extends string, T>(key: K, variable: string, schema: z.ZodType<T, string>) => {
    const value = optional(variable, schema);
    return (value === undefined ? {} : { [key]: value }) as { [P in K]?: T };
  };
  return Object.assign(read, { optional, some });
}

function isSecret(variable: string): boolean {
  return /PASSWORD|SECRET|_URL$|^OTEL_EXPORTER_OTLP_.*(HEADERS|ENDPOINT)$/.test(variable);
}

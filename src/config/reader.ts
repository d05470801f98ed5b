import type { z } from "zod";
import { ConfigError } from "./config-error.ts";
import { type Environment, textOf } from "./variable.ts";

/** Reads variables by their schemas. Each throws ConfigError for what is wrong. */
export interface Reader {
  /** One that must be there, or has a default. */
  <T>(variable: string, schema: z.ZodType<T, string>, fallback?: string): T;
  optional<T>(variable: string, schema: z.ZodType<T, string>): T | undefined;
  /** As a member of an object, which is absent when the variable is. */
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

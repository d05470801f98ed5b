import { STATUS_CODES } from "node:http";
import type { GraphQLError } from "graphql";

export const problemType = "application/problem+json";

/** A formatted error as problem details (RFC 9457), with its extensions as members beside them. */
export function problemOf({ message, extensions }: GraphQLError, status: number): string {
  const { http: _, ...members } = extensions;
  const title = STATUS_CODES[status];
  return JSON.stringify({ type: "about:blank", title, status, detail: message, ...members });
}

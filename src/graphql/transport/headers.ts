import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import { rateLimitHeaderNames } from "../../net/rate-limit-headers.ts";

/** Headers of every answer on the public listener's edge. */
export function setAnswerHeaders(response: ServerResponse, corsOrigins: readonly string[]): void {
  // What a browser must not do with an answer: keep it, guess its type, frame it, and tell others
  // the address, which may hold a watch token.
  response.setHeader("cache-control", "no-store");
  response.setHeader("x-content-type-options", "nosniff");
  response.setHeader("content-security-policy", "frame-ancestors 'none'");
  response.setHeader("referrer-policy", "no-referrer");
  if (corsOrigins.length > 0) response.setHeader("vary", "origin");
}

/** The headers of CORS, by which the pages of listed origins may read an answer. */
export function exposeHeaders(
  response: ServerResponse,
  origin: string | undefined,
  corsOrigins: readonly string[],
): void {
  if (origin === undefined || !corsOrigins.includes(origin)) return;
  response.setHeader("access-control-allow-origin", origin);
  response.setHeader("access-control-allow-methods", cors.methods.join(", "));
  response.setHeader("access-control-expose-headers", cors.exposedHeaders.join(", "));
  response.setHeader("access-control-max-age", String(cors.maxAge));
}

/** Whether a browser only asks whether a page may call. */
export function isPreflight(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

export const cors = {
  // Who calls is in headers that the page sets. Cookies are never read.
  credentials: false,
  methods: ["GET", "POST"],
  exposedHeaders: [...rateLimitHeaderNames, "x-request-id"],
  maxAge: 600,
};

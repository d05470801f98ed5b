import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { rateLimitHeaderNames } from "../../net/rate-limit-headers.ts";

/** Headers of every answer of this edge. */
export function answerHeaders(corsOrigins: readonly string[]): OutgoingHttpHeaders {
  return {
    // What a browser must not do with an answer: keep it, guess its type, frame it, and tell others
    // the address, which may hold a watch token.
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    ...(corsOrigins.length > 0 && { vary: "origin" }),
  };
}

/** Adds the headers of CORS, by which the pages of listed origins may read an answer. */
export function exposeHeaders(
  headers: OutgoingHttpHeaders,
  origin: string | undefined,
  corsOrigins: readonly string[],
): void {
  if (origin === undefined || !corsOrigins.includes(origin)) return;
  headers["access-control-allow-origin"] = origin;
  headers["access-control-allow-methods"] = cors.methods.join(", ");
  headers["access-control-expose-headers"] = cors.exposedHeaders.join(", ");
  headers["access-control-max-age"] = String(cors.maxAge);
}

export function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const name in headers) response.setHeader(name, headers[name] ?? "");
}
/** Whether a browser only asks whether a page may call. */
export function isPreflight(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

export const cors = {
  // Who calls is in headers that the page sets. Cookies are never read.
  credentials: false,
  methods: ["GET", "POST"],
  exposedHeaders: [...rateLimitHeaderNames, "retry-after", "x-request-id"],
  maxAge: 600,
};

import type { IncomingHttpHeaders, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { replayedHeader } from "../../core/idempotency.ts";
import { isListed } from "../../net/browser-origin.ts";
import { rateLimitHeaderNames } from "../../ratelimit/headers.ts";

/** The headers of every response of this edge. */
export function answerHeaders(corsOrigins: readonly string[]): OutgoingHttpHeaders {
  return {
    // A browser must not cache a response, guess its type, frame it, or send its URL to other
    // sites, since that may hold a watch token.
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    ...(corsOrigins.length > 0 && { vary: "origin" }),
  };
}

/** Adds the CORS headers that let the pages of listed origins read a response. */
export function exposeHeaders(
  headers: OutgoingHttpHeaders,
  origin: string | undefined,
  corsOrigins: readonly string[],
): void {
  if (origin === undefined || !isListed(origin, corsOrigins)) return;
  headers["access-control-allow-origin"] = origin;
  headers["access-control-allow-methods"] = cors.methods.join(", ");
  headers["access-control-expose-headers"] = cors.exposedHeaders.join(", ");
  headers["access-control-max-age"] = String(cors.maxAge);
}

export function setHeaders(response: ServerResponse, headers: OutgoingHttpHeaders): void {
  for (const name in headers) response.setHeader(name, headers[name] ?? "");
}
/** Whether a request is a CORS preflight. */
export function isPreflight(method: string | undefined, headers: IncomingHttpHeaders): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

export const cors = {
  // The page sends credentials in headers that it sets. Cookies are never read.
  credentials: false,
  methods: ["GET", "POST"],
  exposedHeaders: [...rateLimitHeaderNames, replayedHeader, "retry-after", "x-request-id"],
  maxAge: 600,
};

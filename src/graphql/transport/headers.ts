import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Credentials } from "../../auth/identify.ts";
import { replayedHeader } from "../../core/idempotency.ts";
import { GatewayError } from "../../errors.ts";
import { isCrossOrigin, isListed, refusedOrigin } from "../../net/browser-origin.ts";
import { rateLimitHeaderNames } from "../../ratelimit/headers.ts";

/**
 * The headers of every response of this edge. With those of CORS the pages of listed origins may
 * read it, and send the headers for which a preflight asks: their credentials. Cookies are never read.
 */
export function answerHeaders(
  given: IncomingHttpHeaders,
  corsOrigins: readonly string[],
): Record<string, string> {
  const { origin, "access-control-request-headers": asked } = given;
  const headers: Record<string, string> = {
    // A browser must not cache a response, guess its type, frame it, or send its URL to other
    // sites, since that may hold a watch token.
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "content-security-policy": "frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
  };
  if (corsOrigins.length > 0) headers.vary = "origin";
  if (origin === undefined || !isListed(origin, corsOrigins)) return headers;
  headers["access-control-allow-origin"] = origin;
  headers["access-control-allow-methods"] = "GET, POST";
  const isPreflight = given["access-control-request-method"] !== undefined;
  if (asked && isPreflight) headers["access-control-allow-headers"] = asked;
  headers["access-control-expose-headers"] = exposedHeaders;
  headers["access-control-max-age"] = "600";
  return headers;
}

const exposed = [...rateLimitHeaderNames, replayedHeader, "retry-after", "x-request-id"];
const exposedHeaders = exposed.join(", ");

/** @throws GatewayError PERMISSION_DENIED for what a page of another origin made a browser send */
export function refuseForeignPage(headers: IncomingHttpHeaders, listed: readonly string[]): void {
  if (!isCrossOrigin(headers, listed)) return;
  throw new GatewayError("PERMISSION_DENIED", refusedOrigin, { reason: "FOREIGN_ORIGIN" });
}

/** The credentials of an HTTP request: its headers and `?watch_token=`. */
export function credentialsOf({ headers, url }: IncomingMessage): Credentials {
  return {
    header: (name) => headers[name]?.toString(),
    watchToken: url?.includes("?")
      ? (URL.parse(url, "http://localhost")?.searchParams.get("watch_token") ?? undefined)
      : undefined,
  };
}

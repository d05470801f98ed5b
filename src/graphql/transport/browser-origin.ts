import type { IncomingHttpHeaders } from "node:http";

/** Headers by which a browser tells which page made it send a request. */
export interface OriginHeaders {
  readonly origin: string | undefined;
  readonly host: string | undefined;
  readonly secFetchSite: string | undefined;
}

/** What a request tells of the page. */
export function originHeadersOf(headers: IncomingHttpHeaders): OriginHeaders {
  const { origin, host, "sec-fetch-site": secFetchSite } = headers;
  return { origin, host, secFetchSite: secFetchSite?.toString() };
}

/**
 * Whether a page of an origin that is neither ours nor listed made a browser send this. Of requests
 * that a browser sends without asking first (GET, WebSocket) CORS hides no more than the answers.
 * What says nothing of a page is no browser of today, or a same-origin request of an older one.
 */
export function isCrossOrigin(headers: OriginHeaders, listed: readonly string[]): boolean {
  const { origin, host, secFetchSite } = headers;
  if (origin === undefined) return secFetchSite === "cross-site" || secFetchSite === "same-site";
  if (listed.includes(origin) || secFetchSite === "same-origin") return false;
  return host === undefined || URL.parse(origin)?.host !== host;
}

import type { IncomingHttpHeaders } from "node:http";

/**
 * Whether a page of an origin that is neither ours nor listed made a browser send this. CORS does
 * not prevent requests that a browser sends without a preflight (GET, WebSocket): it only hides
 * their responses. A request without these headers comes from no current browser, or is a
 * same-origin request of an older one.
 */
export function isCrossOrigin(headers: IncomingHttpHeaders, listed: readonly string[]): boolean {
  const { origin, host, "sec-fetch-site": secFetchSite } = headers;
  if (origin === undefined) return secFetchSite === "cross-site" || secFetchSite === "same-site";
  if (isListed(origin, listed) || secFetchSite === "same-origin") return false;
  return host === undefined || URL.parse(origin)?.host !== host;
}

/** Whether an origin is in a list, in which `http://localhost:*` stands for that host's every port. */
export function isListed(origin: string, listed: readonly string[]): boolean {
  return listed.some((one) => {
    if (!one.endsWith(":*")) return one === origin;
    return origin.replace(/:\d+$/, "") === one.slice(0, -":*".length);
  });
}

/** Completes the refusal of a page: what an operator sets to allow it. */
export const refusedOrigin = "pages of this origin may not call: list it in CORS_ORIGINS";

import type { IncomingHttpHeaders, Server } from "node:http";
import type { Config } from "../config/config.ts";
import type { Address } from "../config/values.ts";
import { isLoopback } from "../net/loopback.ts";

/** Why a request is refused. */
export interface Misdirected {
  readonly status: 403 | 421;
  readonly message: string;
}

/** Undefined for a request that may come in. */
export type HostGuard = (headers: IncomingHttpHeaders) => Misdirected | undefined;

/**
 * Guards a listener that is on loopback and asks nobody who calls, as with AUTH_MODE=none: a page
 * from anywhere can give its own name the address 127.0.0.1 (DNS rebinding), and the browser of
 * whoever works at this machine then takes the listener for that page's own server. The name stays
 * in `Host` (`:authority` in HTTP/2) and the page in `Origin`: both must be of loopback or
 * PUBLIC_URL's; CORS_ORIGINS may call as well.
 *
 * Undefined where there is nothing to guard: callers are asked for credentials, or the listener is
 * not on loopback, and then which names it has is not known here.
 */
export function createHostGuard(
  { auth, publicUrl, corsOrigins }: Pick<Config, "auth" | "publicUrl" | "corsOrigins">,
  listener: Address,
): HostGuard | undefined {
  if (!auth.modes.has("none") || !isLoopback(listener.host)) return undefined;
  const publicName = publicUrl && nameOf(new URL(publicUrl).host);
  const isOurs = (host: string) => {
    const name = nameOf(host);
    return name !== undefined && (isLoopback(name) || name === publicName);
  };
  return (headers) => {
    for (const host of [headers.host, headers[":authority"]]) {
      if (typeof host === "string" && !isOurs(host)) return wrongHost;
    }
    const { origin } = headers;
    if (origin === undefined || corsOrigins.includes(origin)) return undefined;
    return isOurs(URL.parse(origin)?.host ?? "") ? undefined : wrongOrigin;
  };
}

const alone =
  "without authentication (AUTH_MODE=none) this listener answers only to loopback names and the host of PUBLIC_URL";
const wrongHost: Misdirected = { status: 421, message: `${alone}, and Host is neither` };
const wrongOrigin: Misdirected = {
  status: 403,
  message: `${alone}, and Origin is neither, nor in CORS_ORIGINS`,
};

/** The name in `name:port`, undefined for a text that is nothing of the kind. */
function nameOf(host: string): string | undefined {
  const [, name] = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.exec(host) ?? [];
  return name?.toLowerCase().replace(/\.$/, "");
}

/**
 * Has a server refuse what its guard does, before anything else is done with it.
 * @param isOpen paths that anybody may send to
 */
export function guardRequests(
  server: Server,
  guard: HostGuard | undefined,
  isOpen: (path: string) => boolean = () => false,
): Server {
  if (!guard) return server;
  const listeners = server.listeners("request");
  server.removeAllListeners("request");
  return server.on("request", (request, response) => {
    const refused = isOpen(request.url ?? "") ? undefined : guard(request.headers);
    if (!refused) {
      for (const listener of listeners) listener(request, response);
      return;
    }
    request.resume();
    response.writeHead(refused.status, { "content-type": "application/json", connection: "close" });
    response.end(`${JSON.stringify({ error: refused.message })}\n`);
  });
}

import type { IncomingMessage, Server } from "node:http";
import type { Config } from "../config/config.ts";
import type { Address } from "../config/kinds.ts";
import { isCrossOrigin, isListed } from "../net/browser-origin.ts";
import { isLoopback } from "../net/loopback.ts";
import type { Misdirection } from "../net/request-head.ts";
import type { Logger } from "../report.ts";

/**
 * Guards a listener on loopback that needs no credentials (AUTH_MODE=none). Any web page can point
 * its own name to 127.0.0.1 (DNS rebinding), and the browser of a person at this machine then takes
 * the listener for that page's own server. `Host` (`:authority` in HTTP/2) still holds that name,
 * and `Origin` the page's: both must be loopback or the host of PUBLIC_URL. An `Origin` in
 * CORS_ORIGINS is allowed too.
 *
 * Undefined where there is nothing to guard: callers need credentials, or the listener is not on
 * loopback and its names are not known here.
 */
export function createHostGuard(
  { auth, publicUrl, corsOrigins }: Pick<Config, "auth" | "publicUrl" | "corsOrigins">,
  listener: Address,
): Misdirection | undefined {
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
    if (origin === undefined || isListed(origin, corsOrigins)) return undefined;
    return isOurs(URL.parse(origin)?.host ?? "") ? undefined : wrongOrigin;
  };
}

const alone =
  "without authentication (AUTH_MODE=none) this listener answers only to loopback names and the host of PUBLIC_URL";
const wrongHost = { status: 421, message: `${alone}, and Host is neither` };
const wrongOrigin = {
  status: 403,
  message: `${alone}, and Origin is neither, nor in CORS_ORIGINS`,
};

/** The name in `name` or `name:port`, in lower case; undefined for any other text. */
function nameOf(host: string): string | undefined {
  const [, name] = /^([\w.-]+|\[[\da-f:.]+\])(?::\d{1,5})?$/i.exec(host) ?? [];
  return name?.toLowerCase().replace(/\.$/, "");
}

/** Logs each origin once whose pages a listener refuses, since its operator sees no such refusal. */
export function noteRefusedOrigins(
  server: Server,
  { corsOrigins }: Pick<Config, "corsOrigins">,
  log: Pick<Logger, "warn">,
): void {
  const noted = new Set<string>();
  const note = ({ headers }: IncomingMessage) => {
    const { origin } = headers;
    if (origin === undefined || noted.has(origin) || noted.size >= maxNoted) return;
    // What is no origin says nothing, and may be anything.
    if (!isCrossOrigin(headers, corsOrigins)) return;
    if (URL.parse(origin)?.origin !== origin) return;
    noted.add(origin);
    log.warn(
      { origin },
      "refused a page of this origin: to let its pages call, list it in CORS_ORIGINS",
    );
  };
  server.prependListener("request", note).prependListener("upgrade", note);
}

/** Anybody may send any `Origin`: more are refused without a record. */
const maxNoted = 20;

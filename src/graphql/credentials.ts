import type { IncomingMessage } from "node:http";
import type { Credentials } from "../auth/identify.ts";

/** The credentials of an HTTP request: its headers and `?watch_token=`. */
export function credentialsOf({ headers, url }: IncomingMessage): Credentials {
  return {
    header: (name) => headers[name]?.toString(),
    watchToken: url?.includes("?")
      ? (URL.parse(url, "http://localhost")?.searchParams.get("watch_token") ?? undefined)
      : undefined,
  };
}

/** Headers that a `connection_init` payload may carry, in lower case. */
const initHeaders = new Set(["authorization", "x-merchant-account", "x-customer-auth"]);

/**
 * The credentials of a WebSocket. A client may send them in the payload of `connection_init`, since
 * a browser cannot set headers of the upgrade request. The payload overrides those headers.
 */
export function initCredentialsOf(
  request: IncomingMessage,
  payload: Readonly<Record<string, unknown>> | undefined,
): Credentials {
  const given = new Map<string, string>();
  for (const [name, value] of Object.entries(payload ?? {})) {
    if (typeof value === "string" && initHeaders.has(name.toLowerCase())) {
      given.set(name.toLowerCase(), value);
    }
  }
  const upgrade = credentialsOf(request);
  return { ...upgrade, header: (name) => given.get(name) ?? upgrade.header(name) };
}

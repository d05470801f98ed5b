import type { IncomingMessage } from "node:http";
import type { Credentials } from "../auth/identify.ts";

/** Where a request says who is calling: its headers and `?watch_token=`. */
export function credentialsOf({ headers, url }: IncomingMessage): Credentials {
  return {
    header: (name) => headers[name]?.toString(),
    watchToken: url?.includes("?")
      ? (URL.parse(url, "http://localhost")?.searchParams.get("watch_token") ?? undefined)
      : undefined,
  };
}

/** The members of a `connection_init` payload that stand for headers, by their lower-case names. */
const initHeaders = new Set(["authorization", "x-merchant-account", "x-customer-auth"]);

/**
 * A WebSocket says it in the payload of `connection_init`, since a browser cannot set the headers of
 * its upgrade request. What the payload has goes before what the upgrade request had.
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

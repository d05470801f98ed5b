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

import type { IncomingMessage } from "node:http";
import { knownMethodOf } from "./attributes.ts";
import type { Span, Tracing } from "./tracing.ts";

/**
 * Starts the span of a request by HTTP, below the span that its headers name.
 * @param route of its path; undefined while that is not known, or if it has none
 */
export function startHttpSpan(
  tracing: Tracing,
  { method = "GET", headers, httpVersion }: IncomingMessage,
  route?: string,
): Span {
  const isGraphql = route === "/graphql";
  const usual = () => [knownMethodOf(method) ?? "HTTP", route].filter(Boolean).join(" ");
  return tracing.start(isGraphql ? "GraphQL Operation" : usual(), {
    kind: "server",
    parent: (name) => headers[name]?.toString(),
    attributes: () => ({
      "http.route": route,
      ...(isGraphql && { "url.path": route }),
      "http.request.method": knownMethodOf(method) ?? "_OTHER",
      "url.scheme": "http",
      "network.protocol.name": "http",
      "network.protocol.version": httpVersion,
    }),
  });
}

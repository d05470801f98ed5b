import type { ErrorCode } from "../../errors.ts";

/**
 * Every attribute that a span may have, by OpenTelemetry's semantic conventions where they have a
 * name for it. The list is closed so that nothing gets into a trace by accident: no caller's text,
 * no external_id, no URL query, no error message.
 */
export type AttributeName =
  | "error.type"
  | "graphql.operation.type"
  | "http.request.method"
  | "http.response.status_code"
  | "http.route"
  | "network.protocol.name"
  | "network.protocol.version"
  | OldAttributeName
  | "rpc.method"
  /** Called `rpc.status_code` since version 1.45 of the conventions; spans have both. */
  | "rpc.response.status_code"
  | "rpc.status_code"
  | "rpc.system.name"
  | "server.address"
  | "server.port"
  | "url.path"
  | "url.scheme"
  | "url.template"
  /** The merchant account, as the configuration names it. */
  | "payments_gateway.account"
  /** The receiver's verdict on a callback. */
  | "payments_gateway.callback.verdict"
  /** Root fields of a GraphQL operation, as the schema names them. */
  | "payments_gateway.graphql.fields"
  /** How an unknown outcome was looked up, and the result. */
  | "payments_gateway.lookup.outcome"
  | "payments_gateway.lookup.method"
  /** How long a call waited for a token of the budget, in seconds. */
  | "payments_gateway.rate_limit.wait"
  /** The transport of a live stream. */
  | "payments_gateway.transport";

/** Conventions that had other names before they became stable. */
export type OldNames = "http" | "rpc" | "graphql";

/** Their values differ from those of the present names, so code that sets those also sets these. */
const oldOfRpc = [
  "rpc.connect_rpc.error_code",
  "rpc.grpc.status_code",
  "rpc.service",
  "rpc.system",
] as const;
type OldAttributeName = (typeof oldOfRpc)[number];

const oldOfHttp = {
  "http.request.method": "http.method",
  "http.response.status_code": "http.status_code",
  "network.protocol.name": "net.protocol.name",
  "network.protocol.version": "net.protocol.version",
  "server.address": "net.peer.name",
  "server.port": "net.peer.port",
  "url.path": "http.target",
  "url.scheme": "http.scheme",
} as const satisfies { readonly [Name in AttributeName]?: string };

export type Attributes = { readonly [Name in AttributeName]?: string | number | undefined };

/** Names an ended span's attributes: the present names, and beside them the old ones of `kept`. */
export function renameAttributes(
  attributes: Record<string, unknown>,
  kept: readonly OldNames[],
): void {
  if (!kept.includes("rpc")) for (const name of oldOfRpc) delete attributes[name];
  if (!kept.includes("http")) return;
  for (const [name, old] of Object.entries(oldOfHttp)) {
    if (name in attributes) attributes[old] = attributes[name];
  }
}

/** A standard HTTP method (RFC 9110, PATCH of RFC 5789, QUERY); undefined for any other text. */
export function knownMethodOf(method: string): string | undefined {
  return knownMethods.test(method) ? method : undefined;
}

const knownMethods = /^(?:CONNECT|DELETE|GET|HEAD|OPTIONS|PATCH|POST|PUT|QUERY|TRACE)$/;

/** A call's status code by the conventions; undefined for a success by Connect, which has none. */
export function rpcStatusOf(protocol: string, code: ErrorCode | "OK"): string | undefined {
  if (protocol !== "connect") return code;
  return code === "OK" ? undefined : code.toLowerCase();
}

/** Whether a code is a failure of the server, not only a mistake of the caller. */
export function isServerFailure(code: ErrorCode | "OK"): boolean {
  return serverFailures.has(code);
}

const serverFailures: ReadonlySet<string> = new Set<ErrorCode>([
  "UNKNOWN",
  "DEADLINE_EXCEEDED",
  "UNIMPLEMENTED",
  "INTERNAL",
  "UNAVAILABLE",
]);

/**
 * Every attribute that a span may have, by OpenTelemetry's semantic conventions where they have a name
 * for it. The list is closed so that nothing gets into a trace by chance: no text of a caller, no
 * external_id, no query of an address, no message of an error.
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
  /** Since version 1.45 of the conventions `rpc.status_code`; spans have both. */
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
  /** What became of a callback. */
  | "payments_gateway.callback.verdict"
  | "payments_gateway.event.kind"
  | "payments_gateway.event.outcome"
  | "payments_gateway.event.source"
  /** Root fields of a GraphQL operation, as the schema names them. */
  | "payments_gateway.graphql.fields"
  /** How a lost outcome was looked up, and what came of it. */
  | "payments_gateway.lookup.outcome"
  | "payments_gateway.lookup.method"
  /** How long a call waited for a token of the budget, in seconds. */
  | "payments_gateway.rate_limit.wait"
  /** How a stream reaches its reader. */
  | "payments_gateway.transport";

/** Conventions that had other names before they were settled. */
export type OldNames = "http" | "rpc" | "graphql";

/** Their values differ from those of today's names: who sets those sets these too. */
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

/** What a span gets of its attributes: today's names, and beside them the old ones of `kept`. */
export function namedBy(kept: readonly OldNames[]): (attributes: Attributes) => Attributes {
  const isRpcKept = kept.includes("rpc");
  const renamed = kept.includes("http") ? Object.entries(oldOfHttp) : [];
  return (attributes) => {
    const named: Record<string, string | number | undefined> = { ...attributes };
    if (!isRpcKept) for (const name of oldOfRpc) delete named[name];
    for (const [name, old] of renamed) if (name in named) named[old] = named[name];
    return named;
  };
}

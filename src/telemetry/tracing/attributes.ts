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
  | "rpc.response.status_code"
  | "rpc.system.name"
  | "server.address"
  | "server.port"
  | "url.path"
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
  | "payments_gateway.lookup.rail"
  /** How long a call waited for a token of the budget, in seconds. */
  | "payments_gateway.rate_limit.wait"
  /** How a stream reaches its reader. */
  | "payments_gateway.transport";

/** Names from before the conventions for RPC were settled: traced where the environment asks for them. */
const oldAttributes = [
  "rpc.connect_rpc.error_code",
  "rpc.grpc.status_code",
  "rpc.service",
  "rpc.system",
] as const;
type OldAttributeName = (typeof oldAttributes)[number];

/** A span's attributes by today's names alone. */
export function withoutOldNames(attributes: Attributes): Attributes {
  const known: { [Name in AttributeName]?: string | number | undefined } = { ...attributes };
  for (const name of oldAttributes) delete known[name];
  return known;
}

export type Attributes = { readonly [Name in AttributeName]?: string | number | undefined };

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
  | "rpc.connect_rpc.error_code"
  | "rpc.grpc.status_code"
  | "rpc.method"
  | "rpc.service"
  | "rpc.system"
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

export type Attributes = { readonly [Name in AttributeName]?: string | number | undefined };

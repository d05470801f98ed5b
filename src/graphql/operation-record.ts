import type { Caller } from "../auth/caller.ts";
import { noReport, type Report } from "../report.ts";
import { knownMethodOf } from "../telemetry/tracing/attributes.ts";
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";

export type Connection = "http" | "websocket";

/** One operation in the log, in metrics and as a span: its fields, its caller and how it ended. */
export interface OperationRecord {
  readonly connection: Connection;
  /** Transport of a stream: `sse`, `multipart` or `websocket`. */
  readonly streamsBy: string;
  readonly span: Span;
  caller?: Pick<Caller, "name" | "account">;
  /** Starts the record. Not called for a CORS preflight, which is not an operation. */
  begin(): void;
  /** Records the type and the root fields. Field names come from the schema, so labels stay few. */
  asks(type: "query" | "mutation" | "subscription", fields: readonly string[]): void;
  /** Records an external_id that the operation asks for. */
  about(externalId: string): void;
  /** Records the `extensions.code` that the client receives. Only the first call counts. */
  failed(code: string): void;
  /** Reports the end of the operation. Only the first call counts. */
  settle(): void;
}

export interface RecordOptions {
  readonly requestId: string;
  readonly connection: Connection;
  /** Transport of a stream. Default: `sse` over HTTP, `websocket` over WebSocket. */
  readonly streamsBy?: "sse" | "multipart";
  readonly span: Span;
  readonly log: Log;
  /** Default: nothing is reported. */
  readonly report?: Report | undefined;
}

interface Log {
  info(record: object, message: string): void;
  error(record: object, message: string): void;
}

export function createOperationRecord(options: RecordOptions): OperationRecord {
  const { requestId, connection, span, log, report = noReport } = options;
  const { streamsBy = connection === "http" ? "sse" : connection } = options;
  let startedMs: number | undefined;
  let code = "OK";
  let type = "invalid";
  let field = "none";
  let settled = false;
  /** Undefined while there is none: most operations are about one. */
  let externalIds: string | undefined;

  const record: OperationRecord = {
    connection,
    streamsBy,
    span,
    begin() {
      if (startedMs !== undefined) return;
      startedMs = performance.now();
      report("graphqlBegan", { connection });
    },
    asks(asked, fields) {
      type = asked;
      field = fieldLabel(fields);
      span.rename(type, { of: "graphql", name: `${type} ${field}` });
      span.set({
        "graphql.operation.type": type,
        "payments_gateway.graphql.fields": fields.slice(0, maxFields).join(","),
      });
    },
    about(externalId) {
      const known = externalIds?.split(" ") ?? [];
      if (known.length < maxExternalIds && !known.includes(externalId)) {
        externalIds = externalIds ? `${externalIds} ${externalId}` : externalId;
      }
    },
    failed(given) {
      if (code !== "OK") return;
      // Codes come from the gateway or from libraries; anything in another form counts as OTHER.
      code = /^[A-Z_]{2,40}$/.test(given) ? given : "OTHER";
      if (serverFailures.has(code)) span.fail(code);
    },
    settle() {
      if (settled || startedMs === undefined) return;
      settled = true;
      const durationMs = performance.now() - startedMs;
      const transport = type === "subscription" ? streamsBy : connection;
      span.set({ "payments_gateway.transport": transport });
      report("graphqlEnded", {
        ...{ connection, type, field, transport, code, durationMs },
        traceparent: span.traceparent,
      });
      const entry = {
        type,
        field,
        code,
        durationMs: Math.round(durationMs * 1000) / 1000,
        requestId,
        caller: record.caller?.name,
        account: record.caller?.account,
        externalId: externalIds,
        transport,
      };
      // A connection's close event, which may call this, runs outside the span's context.
      span.run(() => {
        if (code === "INTERNAL_SERVER_ERROR") log.error(entry, "graphql");
        else log.info(entry, "graphql");
      });
    },
  };
  return record;
}

const maxFields = 5;
const maxExternalIds = 5;

function fieldLabel(fields: readonly string[]): string {
  const [first = "none", ...others] = fields;
  if (others.length > 0) return "several";
  return first.startsWith("__") ? "introspection" : first;
}

const serverFailures: ReadonlySet<string> = new Set([
  "INTERNAL_SERVER_ERROR",
  "UPSTREAM_UNAVAILABLE",
  "OUTCOME_UNKNOWN",
  "DEADLINE_EXCEEDED",
]);

/** Starts the span of an operation, below the span that the request's headers name. */
export function startOperationSpan(
  tracing: Tracing,
  { method = "GET", headers, httpVersion }: IncomingRequest,
): Span {
  return tracing.start("GraphQL Operation", {
    kind: "server",
    parent: (name) => headers[name]?.toString(),
    attributes: () => ({
      "http.request.method": knownMethodOf(method) ?? "_OTHER",
      "http.route": "/graphql",
      "url.path": "/graphql",
      "url.scheme": "http",
      "network.protocol.name": "http",
      "network.protocol.version": httpVersion,
    }),
  });
}

interface IncomingRequest {
  readonly method?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly httpVersion: string;
}

import type { Handlers } from "../report.ts";
import { alike, type TelemetryContext } from "./metrics.ts";
import { isServerFailure, rpcStatusOf } from "./tracing/attributes.ts";

/** Calls, operations and streams, and what limits cut. The edges write their access log themselves. */
export function edges({ metrics, repeated, durations }: TelemetryContext) {
  const rpcRequests = metrics.counter(
    "rpc_requests_total",
    "RPC calls that have ended, streams included, by status code",
    { service: [], method: [], code: [] },
  );
  const rpcSeconds = metrics.histogram(
    "rpc_request_duration_seconds",
    "Duration of unary RPC calls",
    { service: [], method: [], code: [] },
  );
  const operations = metrics.counter(
    "graphql_operations_total",
    "GraphQL operations that have ended, by root field and the code of the first error",
    { type: [], field: [], transport: [], code: [] },
  );
  const operationSeconds = metrics.histogram(
    "graphql_operation_duration_seconds",
    "Duration of GraphQL queries and mutations",
    { type: [], field: [], code: [] },
  );
  const internalErrors = metrics.counter(
    "internal_errors_total",
    "Calls that ended with an internal error, by edge: rpc or graphql",
    { edge: ["rpc", "graphql"] },
  );
  const byTransport = {
    transport: ["connect", "grpc", "grpc-web", "sse", "multipart", "websocket"],
  };
  const watchers = metrics.gauge("watchers", "Open live streams of events", byTransport);
  const streams = alike((name, help) => metrics.counter(name, help, byTransport), {
    watch_events_delivered_total: "Events delivered to live streams",
    slow_consumers_cut_total: "Live streams cut off because their reader was too slow",
  });
  const watchesEnded = metrics.counter(
    "watches_ended_total",
    "Live streams that have ended, by reason: completed, left by the reader, or the code of an error",
    { transport: [], reason: [] },
  );
  const connectionsCut = metrics.counter(
    "connections_cut_total",
    "Connections, requests and streams cut off by a limit, by listener and limit",
    { listener: [], limit: [] },
  );
  const callsRefused = metrics.counter(
    "calls_refused_total",
    "Calls refused because of overload, by kind: money, watch, other, or unknown when the body was not read yet",
    { listener: ["public", "rpc", "admin"], kind: ["money", "other", "unknown", "watch"] },
  );
  return {
    rpcEnded(call) {
      const { service, method, protocol, code, durationMs, isCallersMistake } = call;
      rpcRequests.add(call);
      if (code === "INTERNAL" && !isCallersMistake) internalErrors.add({ edge: "rpc" });
      if (call.unary) rpcSeconds.observe(call, durationMs, call.traceparent);
      durations?.rpcServerCall(durationMs, {
        "rpc.system.name": protocol === "connect" ? "connectrpc" : "grpc",
        "rpc.method": `${service}/${method}`,
        "rpc.status_code": rpcStatusOf(protocol, code),
        "rpc.response.status_code": rpcStatusOf(protocol, code),
        "error.type": isServerFailure(code) && !isCallersMistake ? code : undefined,
      });
    },
    graphqlEnded(operation) {
      const { type, code, durationMs, traceparent } = operation;
      operations.add(operation);
      if (code === "INTERNAL_SERVER_ERROR") internalErrors.add({ edge: "graphql" });
      if (type !== "subscription") operationSeconds.observe(operation, durationMs, traceparent);
    },
    // OpenTelemetry's metric only, none on /metrics.
    httpEnded({ method, route, version, status, durationMs }) {
      durations?.httpServerRequest(durationMs, {
        "http.request.method": method,
        "http.route": route,
        "http.response.status_code": status,
        "url.scheme": "http",
        "network.protocol.version": version,
        "error.type": status !== undefined && status >= 500 ? String(status) : undefined,
      });
    },
    streamOpened: (stream) => watchers.add(stream),
    streamDelivered: (stream) => streams.watch_events_delivered_total.add(stream),
    streamEnded(stream) {
      watchers.add(stream, -1);
      watchesEnded.add(stream);
      if (stream.detail === "SLOW_CONSUMER") streams.slow_consumers_cut_total.add(stream);
    },
    handshakeFailed: (about) =>
      repeated.add(about.fault, about, "a client could not connect: its TLS handshake failed"),
    cut(about) {
      connectionsCut.add(about);
      repeated.add(`${about.listener} ${about.limit}`, about, "a limit cut a connection");
    },
    refused(about) {
      callsRefused.add(about);
      repeated.add(`${about.listener} overload`, about, "overload: a call was refused");
    },
  } satisfies Partial<Handlers>;
}

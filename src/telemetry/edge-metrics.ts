import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** What comes in: calls, operations, watches, callbacks. */
export function createEdgeMetrics(prefix: string, registers: Registry[]) {
  return {
    rpcRequests: new Counter({
      name: `${prefix}rpc_requests_total`,
      help: "RPC calls that have ended, streams included, by status code",
      labelNames: ["service", "method", "code"],
      registers,
    }),
    rpcSeconds: new Histogram({
      name: `${prefix}rpc_request_duration_seconds`,
      help: "Duration of unary RPC calls",
      labelNames: ["service", "method", "code"],
      buckets: latencyBuckets,
      registers,
    }),
    rpcInFlight: new Gauge({
      name: `${prefix}rpc_requests_in_flight`,
      help: "RPC calls in progress, streams included",
      labelNames: ["service", "method"],
      registers,
    }),
    graphqlOperations: new Counter({
      name: `${prefix}graphql_operations_total`,
      help: "GraphQL operations that have ended, by root field and the code of the first error",
      labelNames: ["type", "field", "transport", "code"],
      registers,
    }),
    graphqlSeconds: new Histogram({
      name: `${prefix}graphql_operation_duration_seconds`,
      help: "Duration of GraphQL queries and mutations",
      labelNames: ["type", "field", "code"],
      buckets: latencyBuckets,
      registers,
    }),
    graphqlInFlight: new Gauge({
      name: `${prefix}graphql_operations_in_flight`,
      help: "GraphQL operations in progress, subscriptions included",
      labelNames: ["connection"],
      registers,
    }),
    internalErrors: new Counter({
      name: `${prefix}internal_errors_total`,
      help: "Calls that ended with an internal error, by edge: rpc or graphql",
      labelNames: ["edge"],
      registers,
    }),
    tlsExpiry: new Gauge({
      name: `${prefix}tls_certificate_expiry_timestamp_seconds`,
      help: "When the certificate of the rpc listener expires, in seconds since the epoch; absent without TLS",
      registers: [],
    }),
    watchers: new Gauge({
      name: `${prefix}watchers`,
      help: "Open live streams of events",
      labelNames: ["transport"],
      registers,
    }),
    watchEvents: new Counter({
      name: `${prefix}watch_events_delivered_total`,
      help: "Events delivered to live streams",
      labelNames: ["transport"],
      registers,
    }),
    watchesEnded: new Counter({
      name: `${prefix}watches_ended_total`,
      help: "Live streams that have ended, by reason: completed, left by the reader, or the code of an error",
      labelNames: ["transport", "reason"],
      registers,
    }),
    slowConsumers: new Counter({
      name: `${prefix}slow_consumers_cut_total`,
      help: "Live streams cut off because their reader was too slow",
      labelNames: ["transport"],
      registers,
    }),
    callbacks: new Counter({
      name: `${prefix}callbacks_total`,
      help: "Callbacks received, by verdict",
      labelNames: ["account", "resource", "verdict"],
      registers,
    }),
    callbackSeconds: new Histogram({
      name: `${prefix}callback_duration_seconds`,
      help: "Time from a callback's headers to its answer",
      labelNames: ["resource", "verdict"],
      buckets: latencyBuckets,
      registers,
    }),
  };
}

/** From a look into memory to the longest that the payments service may take. */
export const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

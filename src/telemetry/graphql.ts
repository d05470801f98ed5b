import { Counter, Gauge, type Registry } from "prom-client";
import type { GraphqlObserver } from "../graphql/operation-record.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import { latencyBuckets } from "./registry.ts";

/** Operations at the GraphQL edge, which logs them itself. */
export function graphqlTelemetry(
  registry: Registry,
  histogram: DurationHistograms,
  onInternalError: () => void,
): GraphqlObserver {
  const registers = [registry];
  const operations = new Counter({
    name: "payments_gateway_graphql_operations_total",
    help: "GraphQL operations that have ended, by root field and the code of the first error",
    labelNames: ["type", "field", "transport", "code"],
    registers,
  });
  const seconds = histogram({
    name: "payments_gateway_graphql_operation_duration_seconds",
    help: "Duration of GraphQL queries and mutations",
    labelNames: ["type", "field", "code"],
    buckets: latencyBuckets,
  });
  const inFlight = new Gauge({
    name: "payments_gateway_graphql_operations_in_flight",
    help: "GraphQL operations in progress, subscriptions included",
    labelNames: ["connection"],
    registers,
  });
  return {
    onOperation(connection) {
      inFlight.inc({ connection });
      return ({ type, field, transport, code, durationMs, traceparent }) => {
        inFlight.dec({ connection });
        operations.inc({ type, field, transport, code });
        if (code === "INTERNAL_SERVER_ERROR") onInternalError();
        if (type === "subscription") return;
        seconds({ type, field, code }, durationMs, traceparent);
      };
    },
  };
}

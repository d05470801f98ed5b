import type { Registry } from "prom-client";
import type { GraphqlObserver } from "../graphql/operation-record.ts";
import { BoundCounter, BoundGauge, byKey } from "./bound.ts";
import type { DurationHistograms } from "./duration-histogram.ts";
import { latencyBuckets } from "./registry.ts";

/** Metrics of GraphQL operations; the GraphQL edge logs them itself. */
export function graphqlTelemetry(
  registry: Registry,
  histogram: DurationHistograms,
  onInternalError: () => void,
): GraphqlObserver {
  const registers = [registry];
  const operations = new BoundCounter({
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
  const inFlight = new BoundGauge({
    name: "payments_gateway_graphql_operations_in_flight",
    help: "GraphQL operations in progress, subscriptions included",
    labelNames: ["connection"],
    registers,
  });
  const inFlightOf = byKey((connection: string) => inFlight.bind({ connection }));
  const operationsOf = byKey((type: string) =>
    byKey((field: string) => ({
      ended: byKey((transport: string) =>
        byKey((code: string) => operations.bind({ type, field, transport, code })),
      ),
      seconds: byKey((code: string) => seconds.bind({ type, field, code })),
    })),
  );
  return {
    onOperation(connection) {
      const underWay = inFlightOf(connection);
      underWay.value += 1;
      return ({ type, field, transport, code, durationMs, traceparent }) => {
        const series = operationsOf(type)(field);
        underWay.value -= 1;
        series.ended(transport)(code).value += 1;
        if (code === "INTERNAL_SERVER_ERROR") onInternalError();
        if (type !== "subscription") series.seconds(code)(durationMs, traceparent);
      };
    },
  };
}

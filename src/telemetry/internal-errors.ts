import { Counter, type Registry } from "prom-client";

/** What nobody foresaw, at either edge. */
export function internalErrorsTelemetry(registry: Registry) {
  const errors = new Counter({
    name: "payments_gateway_internal_errors_total",
    help: "Calls that ended with an internal error, by edge: rpc or graphql",
    labelNames: ["edge"],
    registers: [registry],
  });
  /** Counts those of one edge, from 0 on. */
  return (edge: "rpc" | "graphql"): (() => void) => {
    const ofEdge = errors.labels(edge);
    ofEdge.inc(0);
    return () => ofEdge.inc();
  };
}

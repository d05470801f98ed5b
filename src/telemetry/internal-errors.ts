import { Counter, type Registry } from "prom-client";

/** Counts unexpected errors at either edge. */
export function internalErrorsTelemetry(registry: Registry) {
  const errors = new Counter({
    name: "payments_gateway_internal_errors_total",
    help: "Calls that ended with an internal error, by edge: rpc or graphql",
    labelNames: ["edge"],
    registers: [registry],
  });
  /** A function that counts one error of the edge; the edge's count starts at 0. */
  return (edge: "rpc" | "graphql"): (() => void) => {
    const ofEdge = errors.labels(edge);
    ofEdge.inc(0);
    return () => ofEdge.inc();
  };
}

import { collectDefaultMetrics, Registry } from "prom-client";

/** A registry with prom-client's default metrics of the process. `expositionOf` reads it. */
export function createRegistry(): Registry {
  const registry = new Registry();
  // prom-client refuses histograms with exemplars in any other registry.
  registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE as never);
  collectDefaultMetrics({ register: registry });
  // Gauges named like counters; the same numbers exist by type under names without `_total`.
  for (const kind of ["handles", "requests", "resources"]) {
    registry.removeSingleMetric(`nodejs_active_${kind}_total`);
  }
  return registry;
}

/** In seconds: from a read from memory to the longest time that the payments service may take. */
export const latencyBuckets = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

import { Registry } from "prom-client";

/**
 * All metrics, in OpenMetrics if the scraper accepts it (only that format has exemplars), else in
 * Prometheus's own text format.
 * @param accept the request's `Accept` header
 */
export async function expositionOf(
  registry: Registry,
  accept: string | undefined,
): Promise<{ contentType: string; text: string }> {
  const openMetrics = accept?.includes("application/openmetrics-text");
  const format = openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const view = new Registry();
  view.setContentType(format as typeof Registry.PROMETHEUS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    // For OpenMetrics prom-client strips `_total` from the object's `name` for good: pass a copy.
    view.registerMetric(Object.create(metric));
  }
  return { contentType: view.contentType, text: await view.metrics() };
}

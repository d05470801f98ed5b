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
  const openMetrics = acceptsOpenMetrics(accept ?? "");
  const format = openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const view = new Registry();
  view.setContentType(format as typeof Registry.PROMETHEUS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    // For OpenMetrics prom-client strips `_total` from the object's `name` for good: pass a copy.
    view.registerMetric(Object.create(metric));
  }
  return { contentType: view.contentType, text: await view.metrics() };
}

/** Whether one of the ranges that it accepts is OpenMetrics 1.0.0 (RFC 9110, section 12.5.1). */
function acceptsOpenMetrics(accept: string): boolean {
  return accept.split(",").some((range) => {
    const [type = "", ...parameters] = range
      .toLowerCase()
      .split(";")
      .map((part) => part.trim());
    const isOther = parameters.some((part) => /^(?:version=(?!1\.0\.0$)|q=0(?:\.0*)?$)/.test(part));
    return type === "application/openmetrics-text" && !isOther;
  });
}

import { Registry } from "prom-client";

/**
 * All metrics, in OpenMetrics if the scraper prefers it (only that format has exemplars), else in
 * Prometheus's own text format.
 * @param accept the request's `Accept` header
 */
export async function expositionOf(
  registry: Registry,
  accept: string | undefined,
): Promise<{ contentType: string; text: string }> {
  const openMetrics = prefersOpenMetrics(accept ?? "");
  const format = openMetrics ? Registry.OPENMETRICS_CONTENT_TYPE : Registry.PROMETHEUS_CONTENT_TYPE;
  const view = new Registry();
  view.setContentType(format as typeof Registry.PROMETHEUS_CONTENT_TYPE);
  for (const metric of registry.getMetricsAsArray()) {
    // For OpenMetrics prom-client strips `_total` from the object's `name` for good: pass a copy.
    view.registerMetric(Object.create(metric));
  }
  return { contentType: view.contentType, text: await view.metrics() };
}

/** Compares the weights (RFC 9110, section 12.5.1); without either format Prometheus's is used. */
function prefersOpenMetrics(accept: string): boolean {
  let openMetrics = 0;
  let others = 0;
  for (const range of accept.split(",")) {
    const [type = "", ...parameters] = range.split(";").map((part) => part.trim().toLowerCase());
    const of = (name: string) =>
      parameters.find((parameter) => parameter.startsWith(`${name}=`))?.slice(name.length + 1);
    const weight = Number(of("q") ?? 1);
    const version = of("version") ?? "1.0.0";
    if (type === "application/openmetrics-text" && version === "1.0.0") {
      openMetrics = Math.max(openMetrics, weight);
    } else if (type === "text/plain") {
      others = Math.max(others, weight);
    }
  }
  return openMetrics > 0 && openMetrics >= others;
}

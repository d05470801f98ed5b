import { Registry } from "prom-client";

/**
 * All metrics, in OpenMetrics where the scraper prefers it (exemplars are told there alone), else in
 * Prometheus's own text format.
 * @param accept the request's header
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
    // OpenMetrics takes `_total` off a counter's name for good: it gets a name of its own to do so.
    view.registerMetric(Object.create(metric));
  }
  return { contentType: view.contentType, text: await view.metrics() };
}

/** By the weights of RFC 9110, section 12.5.1; whoever names neither gets the older format. */
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

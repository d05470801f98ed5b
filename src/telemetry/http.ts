import type { HttpObserver } from "../net/observer.ts";
import type { Durations } from "./durations/durations.ts";

/** Durations of requests on the public listener: OpenTelemetry's metric only, none on /metrics. */
export function httpTelemetry(durations: Durations | undefined): HttpObserver | undefined {
  if (!durations) return undefined;
  return {
    onRequest({ method, route, version }) {
      const startedMs = performance.now();
      return (status) =>
        durations.httpServerRequest(performance.now() - startedMs, {
          "http.request.method": method,
          "http.route": route,
          "http.response.status_code": status,
          "url.scheme": "http",
          "network.protocol.version": version,
          "error.type": status !== undefined && status >= 500 ? String(status) : undefined,
        });
    },
  };
}

import { createServer, type Server, type ServerResponse } from "node:http";
import type { Registry } from "prom-client";

export interface AdminOptions {
  readonly registry: Registry;
  /** Empty when traffic may come; else the reasons why not. */
  readonly notReady: () => readonly string[];
  /** Refreshes gauges right before they are read. */
  readonly refresh: () => void;
}

/** The operators' listener: liveness, readiness and metrics. */
export function createAdminServer({ registry, notReady, refresh }: AdminOptions): Server {
  return createServer({ requestTimeout: 10_000, headersTimeout: 10_000 }, (request, response) => {
    const path = (request.url ?? "/").split("?", 1)[0];
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.setHeader("allow", "GET, HEAD");
      return answer(response, 405, { error: "method not allowed" });
    }
    switch (path) {
      case "/healthz":
        return answer(response, 200, { status: "ok" });
      case "/readyz": {
        const reasons = notReady();
        return reasons.length === 0
          ? answer(response, 200, { status: "ready" })
          : answer(response, 503, { status: "not ready", reasons });
      }
      case "/metrics":
        refresh();
        registry.metrics().then(
          (text) => {
            response.setHeader("content-type", registry.contentType);
            response.end(text);
          },
          () => answer(response, 500, { error: "metrics failed" }),
        );
        return;
      case "/":
        return answer(response, 200, { paths: ["/healthz", "/readyz", "/metrics"] });
      default:
        return answer(response, 404, { error: "not found" });
    }
  });
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.end(`${JSON.stringify(body)}\n`);
}

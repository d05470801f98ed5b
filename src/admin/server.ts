import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { Registry } from "prom-client";
import type { ConnectionCounts } from "../limits/connections.ts";
import { limitHttp1 } from "../limits/http1.ts";
import { deafObserver, type LimitObserver } from "../limits/observer.ts";
import { defaultUnreadLimits } from "../limits/unread-answers.ts";
import { type AdminAnswer, answerDeadLetters, type DeadLetters } from "./dead-letters.ts";

export interface AdminOptions {
  readonly registry: Registry;
  /** Empty when traffic may come; else the reasons why not. */
  readonly notReady: () => readonly string[];
  /** Refreshes gauges right before they are read. */
  readonly refresh: () => void;
  readonly deadLetters: DeadLetters;
  /** Connections at once, and who hears of those that are cut. Default: no limit. */
  readonly limits?: { readonly counts: ConnectionCounts; readonly observer: LimitObserver };
}

/** The operators' listener: liveness, readiness, metrics and dead letters. */
export function createAdminServer(options: AdminOptions): Server {
  const timeouts = {
    requestTimeout: 10_000,
    headersTimeout: 10_000,
    connectionsCheckingInterval: 5_000,
  };
  const server = createServer(timeouts, (request, response) => {
    if (!guard.passes(request, response)) return;
    request.resume();
    answer(options, request).then(
      (found) => send(response, request, found),
      () => send(response, request, { status: 503, body: { error: "the store is out of reach" } }),
    );
  });
  const { counts, observer = deafObserver } = options.limits ?? {};
  const guard = limitHttp1(server, { ...defaultUnreadLimits, ...counts }, observer);
  return server;
}

async function answer(options: AdminOptions, request: IncomingMessage): Promise<AdminAnswer> {
  const path = (request.url ?? "/").split("?", 1)[0] ?? "/";
  const method = request.method === "HEAD" ? "GET" : (request.method ?? "GET");
  if (path.startsWith("/dead-letters")) {
    const contentType = request.headers["content-type"];
    const found = await answerDeadLetters(options.deadLetters, method, path, contentType);
    return found ?? { status: 404, body: { error: "not found" } };
  }
  if (method !== "GET") return { status: 405, body: { error: "method not allowed" } };
  switch (path) {
    case "/healthz":
      return { status: 200, body: { status: "ok" } };
    case "/readyz": {
      const reasons = options.notReady();
      return reasons.length === 0
        ? { status: 200, body: { status: "ready" } }
        : { status: 503, body: { status: "not ready", reasons } };
    }
    case "/metrics":
      options.refresh();
      return { status: 200, body: await options.registry.metrics() };
    case "/":
      return { status: 200, body: { paths: ["/healthz", "/readyz", "/metrics", "/dead-letters"] } };
    default:
      return { status: 404, body: { error: "not found" } };
  }
}

/** Text as Prometheus reads it, everything else as JSON. */
function send(response: ServerResponse, request: IncomingMessage, found: AdminAnswer): void {
  const text = typeof found.body === "string";
  response.statusCode = found.status;
  if (found.status === 405) response.setHeader("allow", "GET, HEAD");
  response.setHeader(
    "content-type",
    text ? "text/plain; version=0.0.4; charset=utf-8" : "application/json",
  );
  const body = text ? String(found.body) : `${JSON.stringify(found.body)}\n`;
  response.end(request.method === "HEAD" ? undefined : body);
}

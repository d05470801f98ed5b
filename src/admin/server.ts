import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type ErrorCode, GatewayError } from "../errors.ts";
import { createAdmission } from "../net/admission.ts";
import { isCrossOrigin, originHeadersOf } from "../net/browser-origin.ts";
import type { ConnectionCounts } from "../net/connections.ts";
import type { OnCut } from "../net/cut.ts";
import { cutHttp1, http1Options, limitHttp1 } from "../net/http1.ts";
import { type Body, Intake } from "../net/intake.ts";
import { ReadTurns } from "../net/read-turns.ts";
import { answerApi } from "./api.ts";
import type { ConsoleData } from "./create-console.ts";
import { type AdminAnswer, answerDeadLetters, notFound } from "./dead-letter-routes.ts";
import type { DeadLetters } from "./dead-letters.ts";
import { docsPage } from "./docs.ts";
import { readJson } from "./json-body.ts";
import { type Operator, Refused } from "./operator.ts";
import type { Page } from "./page.ts";

export interface AdminOptions {
  /** All metrics, in the format that this `Accept` asks for. */
  readonly exposition: (accept: string | undefined) => Promise<Exposition>;
  /** Why the gateway is not ready for traffic; empty when it is. */
  readonly notReady: () => readonly string[];
  /** Further facts that `/readyz` reports without changing its status; undefined for none. */
  readonly details?: () => Readonly<Record<string, unknown>> | undefined;
  /** Refreshes gauges right before they are read. */
  readonly refresh: () => void | Promise<void>;
  readonly deadLetters: DeadLetters;
  readonly console: Console;
  /** Serves only health and metrics, to anyone. Default: everything. */
  readonly healthOnly?: boolean;
  /** Limits of open connections, and a callback for cut ones. Default: no limit. */
  readonly limits?: {
    readonly counts: ConnectionCounts;
    readonly intake: Intake;
    readonly onCut: OnCut;
  };
}

/** The response to a scrape. */
export interface Exposition {
  readonly contentType: string;
  readonly text: string;
}

/** The operator's page, its data, and who may see them. */
export interface Console {
  /** Undefined when the page was not built. */
  readonly page: Page | undefined;
  /** The operator who sent a request. @throws GatewayError UNAUTHENTICATED, PERMISSION_DENIED */
  operatorOf(request: IncomingMessage): Promise<Operator>;
  readonly data: ConsoleData;
  /** Answers a request for `/graphql`, and identifies its operator itself. */
  graphql(request: IncomingMessage, response: ServerResponse): void;
  /** An unexpected error: the operator sees only that one happened. */
  onFailure(error: unknown): void;
}

/**
 * The operators' listener. It serves health, metrics and the console's page to anyone; the page's
 * data and the dead letters only to operators.
 */
export function createAdminServer(options: AdminOptions): Server {
  const serverOptions = {
    ...http1Options,
    requestTimeout: 10_000,
    headersTimeout: 10_000,
    connectionsCheckingInterval: 5_000,
  };
  const { counts = {}, onCut = () => {} } = options.limits ?? {};
  const { intake = new Intake({ admission: createAdmission({ maxCalls: undefined }) }) } =
    options.limits ?? {};
  const cut = cutHttp1(onCut);
  const bodyOf = (request: IncomingMessage) => intake.body(request, request.socket, cut);
  const server = createServer(serverOptions, (request, response) => {
    if (!passes(request, response)) return;
    for (const [name, value] of Object.entries(commonHeaders)) response.setHeader(name, value);
    answer(options, request, response, bodyOf)
      .catch((error: unknown) => failed(options, error))
      .then((found) => found && send(response, request, found));
  });
  // Its requests do not wait until those of other listeners are read.
  const inlet = { budget: intake.budget, readTurns: new ReadTurns() };
  const passes = limitHttp1(server, counts, inlet, onCut);
  return server;
}

/** Begins to count a request's body. */
type BodyOf = (request: IncomingMessage) => Body;

async function answer(
  options: AdminOptions,
  request: IncomingMessage,
  response: ServerResponse,
  bodyOf: BodyOf,
): Promise<AdminAnswer | undefined> {
  const url = plainUrl(request.url ?? "/");
  if (!url) {
    request.resume();
    throw new Refused(400, "the path must be in its shortest form, without dot segments");
  }
  const [, first = ""] = url.pathname.split("/", 2);
  if (options.healthOnly && (first === "" || operatorPaths.has(first))) {
    request.resume();
    throw new Refused(403, withoutOperators, "ADMIN_UNAUTHENTICATED");
  }
  if (operatorPaths.has(first)) return answerOperator(options, request, response, bodyOf, url);
  request.resume();
  if (methodOf(request) !== "GET") {
    response.setHeader("allow", "GET, HEAD");
    throw new Refused(405, "method not allowed");
  }
  return answerAnybody(options, request, response, url.pathname);
}

/**
 * A request's address; undefined for one that is read as another path than it has. With such a
 * path, like `/metrics/../dead-letters`, a caller would pass a proxy's rule for paths.
 */
function plainUrl(target: string): URL | undefined {
  const url = URL.parse(target, "http://localhost");
  const [path = ""] = target.split("?", 1);
  return url?.pathname === path ? url : undefined;
}

const withoutOperators =
  "with AUTH_MODE=none a listener off loopback serves health and metrics alone: set ADMIN_KEY, or give keys or jwt, or set ADMIN_ADDR to loopback";

const operatorPaths: ReadonlySet<string> = new Set(["graphql", "api", "dead-letters"]);

async function answerAnybody(
  { notReady, details: detailsOf, refresh, exposition, console: { page } }: AdminOptions,
  request: IncomingMessage,
  response: ServerResponse,
  path: string,
): Promise<AdminAnswer> {
  switch (path) {
    case "/healthz":
      return { status: 200, body: { status: "ok" } };
    case "/readyz": {
      const reasons = notReady();
      const details = detailsOf?.();
      const extra = details && { details };
      return reasons.length === 0
        ? { status: 200, body: { status: "ready", ...extra } }
        : { status: 503, body: { status: "not ready", reasons, ...extra } };
    }
    case "/metrics": {
      await refresh();
      const { contentType, text } = await exposition(request.headers.accept);
      response.setHeader("content-type", contentType);
      response.setHeader("vary", "accept");
      return { status: 200, body: text };
    }
    case "/":
      // The page holds no data: it requests what it shows, as the operator.
      if (!page) return { status: 404, body: notBuilt };
      for (const [name, value] of Object.entries(page.headers)) response.setHeader(name, value);
      return { status: 200, body: page.html };
    default: {
      const page = docsPage(path);
      return page === undefined ? notFound : { status: 200, body: page };
    }
  }
}

async function answerOperator(
  { console, deadLetters }: AdminOptions,
  request: IncomingMessage,
  response: ServerResponse,
  bodyOf: BodyOf,
  { pathname: path, searchParams: query }: URL,
): Promise<AdminAnswer | undefined> {
  if (isCrossOrigin(originHeadersOf(request.headers), [])) {
    request.resume();
    throw new Refused(403, "pages of other origins may not call", "FOREIGN_ORIGIN");
  }
  if (path === "/graphql") {
    console.graphql(request, response);
    return undefined;
  }
  const incoming = bodyOf(request);
  try {
    const operator = await console.operatorOf(request);
    const method = methodOf(request);
    const contentType = request.headers["content-type"];
    const body = () => readJson(incoming, contentType);
    const asked = { method, path, query, contentType, body };
    const answered = path.startsWith("/api/")
      ? await answerApi(console.data, operator, asked)
      : await answerDeadLetters(deadLetters, operator, asked);
    return answered ?? notFound;
  } finally {
    incoming.discard();
  }
}

function failed({ console }: AdminOptions, error: unknown): AdminAnswer {
  if (error instanceof Refused) {
    const { status, message, reason } = error;
    return { status, body: { error: message, ...(reason !== undefined && { reason }) } };
  }
  const status = error instanceof GatewayError ? statuses.get(error.code) : undefined;
  if (error instanceof GatewayError && status !== undefined) {
    const { reason } = error.details;
    return { status, body: { error: error.message, ...(reason !== undefined && { reason }) } };
  }
  // A malformed percent escape in the path.
  if (error instanceof URIError) return notFound;
  console.onFailure(error);
  return { status: 500, body: { error: "internal error" } };
}

const statuses: ReadonlyMap<ErrorCode, number> = new Map<ErrorCode, number>([
  ["INVALID_ARGUMENT", 400],
  ["CANCELLED", 400],
  ["UNAUTHENTICATED", 401],
  ["PERMISSION_DENIED", 403],
  ["NOT_FOUND", 404],
  ["RESOURCE_EXHAUSTED", 503],
  ["UNAVAILABLE", 503],
]);

function methodOf({ method = "GET" }: IncomingMessage): string {
  return method === "HEAD" ? "GET" : method;
}

const notBuilt =
  "The console's page was not built. Run `npm run build:console` in the gateway's directory, and " +
  "start the gateway again.\n\nAlso here: /healthz, /readyz, /metrics, /dead-letters\n";

/** Responses must not be cached, framed or sniffed. */
const commonHeaders = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
} as const;

function send(response: ServerResponse, request: IncomingMessage, found: AdminAnswer): void {
  const text = typeof found.body === "string";
  response.statusCode = found.status;
  if (found.allow !== undefined) response.setHeader("allow", found.allow);
  if (found.body === undefined) return void response.end();
  if (found.status === 401) response.setHeader("www-authenticate", "Bearer");
  if (!response.hasHeader("content-type")) {
    response.setHeader("content-type", text ? "text/plain; charset=utf-8" : "application/json");
  }
  const body = text ? String(found.body) : `${JSON.stringify(found.body)}\n`;
  response.end(request.method === "HEAD" ? undefined : body);
}

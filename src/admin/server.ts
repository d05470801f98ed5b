import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { GatewayError } from "../errors.ts";
import { mappings } from "../graphql/errors.ts";
import { isCrossOrigin } from "../net/browser-origin.ts";
import type { ConnectionCounts } from "../net/connections.ts";
import type { OnCut } from "../net/cut.ts";
import { http1Options, limitHttp1 } from "../net/http1.ts";
import type { Body, Intake } from "../net/intake.ts";
import { isJsonType } from "../net/json.ts";
import type { Misdirection } from "../net/request-head.ts";
import { type AdminAnswer, type Operator, Refused, type Routes } from "./operator.ts";

export type OpenRoutes = Readonly<
  Record<string, (accept: string | undefined) => AdminAnswer | Promise<AdminAnswer>>
>;

export interface AdminOptions {
  /** What anybody may get, by its path. The callback receives the request's `Accept`. */
  readonly open: OpenRoutes;
  /** What only operators may ask for, at `/api` and `/dead-letters`. */
  readonly routes: Routes;
  /** The operator who sent a request. @throws GatewayError UNAUTHENTICATED, PERMISSION_DENIED */
  readonly operatorOf: (request: IncomingMessage) => Promise<Operator>;
  /** Answers a request for `/graphql`, and identifies its operator itself. */
  readonly graphql: (request: IncomingMessage, response: ServerResponse) => void;
  /** An unexpected error: the operator sees only that one happened. */
  readonly onFailure: (error: unknown) => void;
  /** Serves only health and metrics, to anyone. */
  readonly healthOnly: boolean;
  readonly counts: ConnectionCounts;
  /** Which requests are refused by their headers alone. */
  readonly misdirection?: Misdirection | undefined;
  readonly intake: Intake;
  readonly onCut: OnCut;
}

/**
 * The operators' listener. It serves health, metrics and the console's page to anyone; the page's
 * data and the dead letters only to operators.
 */
export function createAdminServer(options: AdminOptions): Server {
  const { healthOnly, intake, onCut, onFailure } = options;
  const routeOf = createRouter(options.routes);
  const server = createServer(
    {
      ...http1Options,
      requestTimeout: 10_000,
      headersTimeout: 10_000,
      connectionsCheckingInterval: 5_000,
    },
    (request, response) => {
      if (!passes(request, response)) return;
      response.setHeaders(commonHeaders);
      answer(request, response)
        .catch(failed)
        .then((found) => found && send(response, request, found));
    },
  );
  // Not in `intake.readTurns`: its requests do not wait until those of other listeners are read.
  const passes = limitHttp1(server, options.counts, intake.budget, onCut, options.misdirection);
  return server;

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<AdminAnswer | undefined> {
    const url = plainUrl(request.url ?? "/");
    const [, first = ""] = url?.pathname.split("/", 2) ?? [];
    const isForOperators = operatorPaths.has(first);
    if (url && isForOperators && !healthOnly) return answerOperator(request, response, url);
    request.resume();
    if (!url) throw new Refused(400, "the path must be in its shortest form, without dot segments");
    if (healthOnly && (isForOperators || first === "")) {
      throw new Refused(403, withoutOperators, "ADMIN_UNAUTHENTICATED");
    }
    if (methodOf(request) !== "GET") return notAllowed(["GET"]);
    return options.open[url.pathname]?.(request.headers.accept) ?? notFound;
  }

  async function answerOperator(
    request: IncomingMessage,
    response: ServerResponse,
    { pathname: path, searchParams: query }: URL,
  ): Promise<AdminAnswer | undefined> {
    if (isCrossOrigin(request.headers, [])) {
      request.resume();
      throw new Refused(403, "pages of other origins may not call", "FOREIGN_ORIGIN");
    }
    if (path === "/graphql") {
      options.graphql(request, response);
      return undefined;
    }
    const incoming = intake.bodyOf(request, response, onCut);
    try {
      const operator = await options.operatorOf(request);
      const method = methodOf(request);
      // A page of another origin can make a browser post a form or plain text, but not JSON.
      if (method === "POST" && !isJsonType(request.headers["content-type"])) {
        throw new Refused(415, "send content-type: application/json");
      }
      const route = routeOf(method, path);
      if ("status" in route) return route;
      const { variables } = route;
      const body = () => readJson(incoming);
      return await route.answer({ operator, variables, query, body });
    } finally {
      incoming.discard();
    }
  }

  function failed(error: unknown): AdminAnswer {
    if (error instanceof Refused) return refusal(error.status, error.message, error.reason);
    // A malformed percent escape in the path.
    if (error instanceof URIError) return notFound;
    // Only the messages of these errors are written to be read.
    const known = error instanceof GatewayError ? error : undefined;
    const status = known ? mappings[known.code].status : 500;
    if (status === 500) onFailure(error);
    return refusal(status, known?.message ?? "internal error", known?.details.reason);
  }
}

/** Finds the route of a request, or the refusal of one that has none. */
function createRouter(routes: Routes) {
  const all = Object.entries(routes).map(([route, answer]) => {
    const [method, path = ""] = route.split(" ");
    return { method, path: new RegExp(`^${path.replace(/\{\w+\}/g, "([^/]+)")}$`), answer };
  });
  return (method: string, path: string) => {
    const ofPath = all.filter((route) => route.path.test(path));
    const found = ofPath.find((route) => route.method === method);
    if (!found)
      return ofPath.length === 0 ? notFound : notAllowed(ofPath.map((route) => route.method));
    const variables = found.path.exec(path)?.slice(1).map(decodeURIComponent) ?? [];
    return { variables, answer: found.answer };
  };
}

const notFound: AdminAnswer = { status: 404, body: { error: "not found" } };

function notAllowed(methods: readonly (string | undefined)[]): AdminAnswer {
  const allow = methods.join(", ").replace("GET", "GET, HEAD");
  return { status: 405, body: { error: "method not allowed" }, headers: { allow } };
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

/** Far more than the console sends. */
const maxBodyBytes = 16 * 1024;

/** @throws Refused */
async function readJson(body: Body): Promise<unknown> {
  const tooLarge = () => new Refused(413, "the body is too large");
  const bytes = await body.whole({ maxBytes: maxBodyBytes }, tooLarge);
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw new Refused(400, "the body is not JSON");
  }
}

function refusal(status: number, error: string, reason?: string): AdminAnswer {
  return { status, body: { error, reason } };
}

function methodOf({ method = "GET" }: IncomingMessage): string {
  return method === "HEAD" ? "GET" : method;
}

/** Responses must not be cached, framed or sniffed. */
const commonHeaders = new Map([
  ["cache-control", "no-store"],
  ["content-security-policy", "default-src 'none'; frame-ancestors 'none'"],
  ["referrer-policy", "no-referrer"],
  ["x-content-type-options", "nosniff"],
  ["x-frame-options", "DENY"],
]);

function send(response: ServerResponse, request: IncomingMessage, found: AdminAnswer): void {
  const text = typeof found.body === "string";
  response.statusCode = found.status;
  response.setHeaders(new Map(Object.entries(found.headers ?? {})));
  if (found.body === undefined) return void response.end();
  if (found.status === 401) response.setHeader("www-authenticate", "Bearer");
  if (!response.hasHeader("content-type")) {
    response.setHeader("content-type", text ? "text/plain; charset=utf-8" : "application/json");
  }
  const body = text ? String(found.body) : `${JSON.stringify(found.body)}\n`;
  response.end(request.method === "HEAD" ? undefined : body);
}

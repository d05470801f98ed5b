import type { IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { GraphiQLOptions } from "graphql-yoga";
import { replayedHeader } from "../core/idempotency.ts";
import type { Body } from "../net/intake.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import type { Edge } from "./edge.ts";
import { RequestError } from "./errors.ts";
import { firstDocuments } from "./first-documents.ts";
import { paramsOf } from "./http-params.ts";
import type { Operation } from "./operation.ts";
import { type Begun, beginOperation, settled } from "./operations.ts";
import { type Answer, encode } from "./transport/answer.ts";
import { beginStream, resultAsEvents } from "./transport/event-stream.ts";
import { refuseForeignPage } from "./transport/headers.ts";
import { graphqlEvents } from "./transport/stream-format.ts";

/**
 * GraphQL over HTTP: queries and mutations by POST (queries by GET too), and subscriptions whose
 * client accepts one of the stream formats.
 */
export function createHttpPath(edge: Edge) {
  const { core, corsOrigins, production } = edge;

  async function begin(request: IncomingMessage, body: Body, operation: Operation): Promise<Begun> {
    const { method, headers } = request;
    const { slot, accepted } = operation.request;
    if (method !== "GET" && method !== "POST") {
      throw notAllowed("GraphQL only supports GET and POST requests.", "GET, POST");
    }
    operation.begin();
    // Before any other work.
    refuseForeignPage(headers, corsOrigins);
    // The body is read once the caller is known: a request without credentials costs nothing more.
    const ask = () => paramsOf(request, body, slot, edge);
    return beginOperation(edge, operation, ask, (type) => {
      if (type === "mutation" && method === "GET") {
        throw notAllowed("Can only perform a mutation operation from a POST request.", "POST");
      }
      if (type === "subscription" && !accepted?.streamFormat) {
        const message =
          "a subscription is a stream: accept text/event-stream, or multipart/mixed;subscriptionSpec=1.0";
        throw new RequestError(message, "BAD_REQUEST", { status: 406 });
      }
    });
  }

  /** Headers for what is known only after the operation. */
  function headersAfter(operation: Operation): OutgoingHttpHeaders {
    const { caller, isReplay, movesMoney, retryAfterSeconds } = operation;
    return {
      ...(isReplay && { [replayedHeader]: "true" }),
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
      ...(caller && rateLimitHeaders(core.rateLimit({ caller }), movesMoney)),
    };
  }

  return async (request: IncomingMessage, body: Body, operation: Operation): Promise<Answer> => {
    const { method, headers } = request;
    const isPage = !production && method === "GET" && headers.accept?.includes("text/html");
    if (isPage || method === "OPTIONS") {
      body.discard();
      return isPage ? pageAnswer() : { status: 204, headers: {}, body: undefined };
    }
    const result = await settled(edge, { operation }, () => begin(request, body, operation));
    body.discard();
    const accepted = operation.request.accepted!;
    if ("live" in result) {
      const format = accepted.streamFormat ?? graphqlEvents;
      const reconnects = method === "GET" && format === graphqlEvents;
      return beginStream({ ...result, format, reconnects });
    }
    const answer = accepted.onlyEvents
      ? resultAsEvents(result, method)
      : encode(result, accepted.resultType);
    return { ...answer, headers: { ...headersAfter(operation), ...answer.headers } };
  };
}

function notAllowed(message: string, allow: string): RequestError {
  return new RequestError(message, "BAD_REQUEST", { status: 405, allow });
}

/**
 * GraphiQL with its scripts in the page, so that a browser fetches nothing from elsewhere. The
 * scripts are megabytes, and are loaded when GraphiQL is first opened.
 */
async function pageAnswer(): Promise<Answer> {
  const { renderGraphiQL } = await import("@graphql-yoga/render-graphiql");
  const options: GraphiQLOptions = {
    title: "Payments",
    subscriptionsProtocol: "SSE",
    defaultTabs: [...firstDocuments],
  };
  const headers = { "content-type": "text/html" };
  return { status: 200, headers, body: renderGraphiQL(options) };
}

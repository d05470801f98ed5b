import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { GatewayError } from "../errors.ts";
import type { CallKind, Slot } from "../net/admission.ts";
import { overloaded } from "../net/overloaded.ts";
import type { Misdirection } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { startHttpSpan } from "../telemetry/tracing/http-span.ts";
import type { Span } from "../telemetry/tracing/tracing.ts";
import { createEdge, type EdgeOptions } from "./edge.ts";
import { type FormatError, headOf } from "./errors.ts";
import { createHttpPath } from "./http-path.ts";
import { Operation, type OperationRequest } from "./operation.ts";
import { acceptedOf, graphqlType, jsonType } from "./transport/accept.ts";
import { type Answer, sendAnswer } from "./transport/answer.ts";
import { answerHeaders, credentialsOf } from "./transport/headers.ts";
import { eventStreamType, multipartResults, reconnectMs } from "./transport/stream-format.ts";
import { createWatchPath, watchedBy } from "./transport/watch.ts";
import { serveWebSockets } from "./transport/websocket.ts";

export type GraphqlServer = ReturnType<typeof createGraphqlServer>;

/**
 * The GraphQL edge: queries and mutations by POST (queries by GET too), subscriptions by
 * Server-Sent Events, WebSocket and Apollo's multipart protocol. The plain watches of `/watch` use
 * the same streams.
 */
export function createGraphqlServer(options: EdgeOptions) {
  const edge = createEdge(options);
  const { identify, log, tracing, corsOrigins, admission, intake, onCut, onRefused } = edge;
  const answerHttp = createHttpPath(edge);
  const answerWatch = createWatchPath(edge);
  const refusal = createRefusal(edge.formatError);

  /** Answers a request by what `respond` makes of it, and records the operation. */
  async function answer(exchange: Exchange, span: Span, slot: Slot): Promise<void> {
    const { request, response, watch, respond } = exchange;
    const { headers: sent, method } = request;
    const requestId = requestIdOf(sent[requestIdHeader]?.toString());
    const accepted = acceptedOf(sent.accept);
    const inParts = !watch && accepted.streamFormat === multipartResults;
    const credentials = credentialsOf(request);
    const operation = new Operation(edge, {
      ...{ requestId, span, slot, accepted, streamsBy: inParts ? "multipart" : "sse" },
      ...(watch && { watch }),
      idempotencyKey: sent["idempotency-key"]?.toString(),
      isGet: method === "GET",
      lastEventId: sent["last-event-id"]?.toString() || undefined,
      acceptLanguage: sent["accept-language"] ?? null,
      authenticate: (account) => identify(credentials, account),
    });
    response.on("close", () => {
      if (response.writableFinished) settle();
      else leaveInTurn(settle);
    });
    const settle = () => {
      span.set({ "http.response.status_code": response.statusCode });
      operation.end({ hasLeft: !response.writableFinished });
    };
    const answered = await respond(operation);
    // The client left before its whole body had arrived.
    if (request.destroyed && !request.complete) return void response.destroy();
    // Give the slot back before writing: a client that does not read must not hold it.
    slot.leave();
    await send(exchange, answered, { [requestIdHeader]: requestId });
  }

  function send(
    { request, response }: Exchange,
    answered: Answer,
    more?: Readonly<Record<string, string>>,
  ): Promise<void> {
    const usual = answerHeaders(request.headers, corsOrigins);
    const headers = { ...more, ...usual, ...answered.headers };
    return sendAnswer({ ...answered, headers }, response, edge.heartbeats);
  }

  /** Starts an exchange in its turn, or refuses it, before its body is read. */
  function enter(exchange: Exchange): void {
    const { request, response, route } = exchange;
    const kind = kindOf(request);
    const settle = (answering: Promise<void>) => {
      answering.catch((error) => {
        if (!response.destroyed) log.error({ err: error }, "response not sent");
        response.destroy();
      });
    };
    admission.enter({
      kind,
      owner: request.socket,
      isGone: () => request.socket.destroyed,
      start(slot) {
        const span = startHttpSpan(tracing, request, route);
        settle(span.run(() => answer(exchange, span, slot)));
      },
      refuse(kind) {
        onRefused(kind);
        settle(send(exchange, refusal(request)));
      },
    });
  }

  return {
    /** Answers a request for `/graphql`. */
    handle(request: IncomingMessage, response: ServerResponse): void {
      const incoming = intake.bodyOf(request, response, onCut);
      const respond = (operation: Operation) => answerHttp(request, incoming, operation);
      enter({ request, response, route: "/graphql", respond });
    },
    /** Answers a request for a path below `/watch/`. */
    handleWatch(request: IncomingMessage, response: ServerResponse): void {
      // A watch has no body: what comes is discarded, also while it waits for its turn.
      request.resume();
      const watched = watchedBy(request);
      const route = watched && `/watch/${watched.kind.resource}/{external_id}`;
      const respond = (operation: Operation) => answerWatch(request, watched, operation);
      enter({ request, response, route, watch: { kind: watched?.kind.name }, respond });
    },
    /** Serves WebSockets. @param misdirection see `serveWebSockets` */
    attachWebSocket: (server: Server, misdirection?: Misdirection) =>
      serveWebSockets(server, edge, misdirection),
    /**
     * Ends the queries and mutations without a response: their clients receive `reason`, or an
     * unknown outcome where money may have moved. Live streams end when the core ends them.
     */
    endCalls(reason: GatewayError): void {
      for (const call of edge.underWay) call.abort(reason);
    },
  };
}

/** A request, its response, and what the one makes of the other. */
interface Exchange extends Pick<OperationRequest, "watch"> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly route: string | undefined;
  readonly respond: (operation: Operation) => Promise<Answer>;
}

/** How the limits treat a request, before its body is read. */
function kindOf(request: IncomingMessage): CallKind {
  // A preflight costs nothing, and a page needs it to read the refusal.
  if (request.method === "OPTIONS") return "exempt";
  if (isStream(request)) return "watch";
  return request.method === "GET" ? "other" : "unknown";
}

/** Answers requests that are refused because of overload: an error is encoded once in each form. */
function createRefusal(formatError: FormatError): (request: IncomingMessage) => Answer {
  const { status, headers } = headOf(overloaded());
  const body = JSON.stringify({ errors: [formatError(overloaded())] });
  return (request) => {
    if (isStream(request)) {
      // An EventSource gives up after any status but 200. This response makes it reconnect.
      const body = `retry: ${reconnectMs(undefined)}\n\n`;
      return { status: 200, headers: { "content-type": eventStreamType }, body };
    }
    const type = request.headers.accept?.includes(graphqlType) ? graphqlType : jsonType;
    return { status, headers: { ...headers, "content-type": `${type}; charset=utf-8` }, body };
  };
}

/** Whether a request is for an event stream, as an EventSource sends it, or for one of `/watch`. */
function isStream({ method, url, headers: { accept = "" } }: IncomingMessage): boolean {
  return url?.startsWith("/watch/") || (method === "GET" && accept.includes(eventStreamType));
}

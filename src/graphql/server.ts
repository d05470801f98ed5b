import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import { inAccount } from "../auth/identify.ts";
import { replayedHeader } from "../core/idempotency.ts";
import type { GatewayError } from "../errors.ts";
import { kinds } from "../model/kinds.ts";
import type { Slot } from "../net/admission.ts";
import type { Body } from "../net/intake.ts";
import type { Misdirection } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import type { Span } from "../telemetry/tracing/tracing.ts";
import { callOf } from "./context.ts";
import { credentialsOf } from "./credentials.ts";
import { createEdge, type EdgeOptions } from "./edge.ts";
import { createHttpPath } from "./http-path.ts";
import {
  Operation,
  type OperationRequest,
  startOperationSpan,
  startWatchSpan,
} from "./operation.ts";
import { acceptedOf } from "./transport/accept.ts";
import type { Answer } from "./transport/event-stream.ts";
import { answerHeaders } from "./transport/headers.ts";
import { sendAnswer } from "./transport/send.ts";
import { multipartResults } from "./transport/stream-format.ts";
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
  const { core, identify, log, tracing, corsOrigins, overload, intake, onCut } = edge;
  const answerHttp = createHttpPath(edge);
  const watch = createWatchPath(edge);

  /** Answers a request by what `respond` makes of it, and records the operation. */
  async function answer(
    { request, response, watch, respond }: Exchange,
    span: Span,
    slot: Slot,
  ): Promise<void> {
    const { headers: sent, method } = request;
    const requestId = requestIdOf(sent[requestIdHeader]?.toString());
    const accepted = acceptedOf(sent.accept);
    const inParts = !watch && accepted.streamFormat === multipartResults;
    const credentials = credentialsOf(request);
    const operation = new Operation(edge, {
      ...{ requestId, connection: "http", span, slot },
      ...(watch && { watch }),
      ...{ accepted, streamsBy: inParts ? "multipart" : "sse" },
      idempotencyKey: sent["idempotency-key"]?.toString(),
      isGet: method === "GET",
      lastEventId: sent["last-event-id"]?.toString() || undefined,
      acceptLanguage: sent["accept-language"] ?? null,
      authenticate: (account) =>
        identify(account === undefined ? credentials : inAccount(credentials, account)),
    });
    let isWhole = false;
    response.on("close", () => {
      if (response.writableFinished) settle();
      else leaveInTurn(settle);
    });
    const settle = () => {
      span.set({ "http.response.status_code": response.statusCode });
      operation.end({ isWhole, hasLeft: !response.writableFinished });
    };
    const { whole, ...answered } = await respond(operation);
    // The client left before its whole body had arrived.
    if (request.destroyed && !request.complete) return void response.destroy();
    isWhole = whole === true;
    // Give the slot back before writing: a client that does not read must not hold it.
    slot.leave();
    const headers = {
      [requestIdHeader]: requestId,
      ...answerHeaders(sent.origin, corsOrigins),
      ...answered.headers,
    };
    await sendAnswer({ ...answered, headers }, response, edge.heartbeats);
  }

  async function respondByGraphql(
    request: IncomingMessage,
    incoming: Body,
    operation: Operation,
  ): Promise<Answer> {
    const answered = await answerHttp(request, incoming, operation);
    incoming.discard();
    const { caller, movesMoney, retryAfterSeconds } = operation;
    if (typeof answered.body === "object" || !caller) return answered;
    // What is known only after the operation.
    const headers: OutgoingHttpHeaders = {
      ...(operation.isReplay && { [replayedHeader]: "true" }),
      ...(retryAfterSeconds !== undefined && { "retry-after": String(retryAfterSeconds) }),
      ...rateLimitHeaders(core.rateLimit(callOf(caller, operation)), movesMoney),
    };
    return { ...answered, headers: { ...headers, ...answered.headers } };
  }

  /** Starts an exchange in its turn. */
  function enter(exchange: Exchange, startSpan: () => Span): void {
    const { request, response } = exchange;
    overload.enterByHttp(request, response, (slot) => {
      const span = startSpan();
      const answering = span.run(() => answer(exchange, span, slot));
      answering.catch((error) => {
        if (!response.destroyed) log.error({ err: error }, "response not sent");
        response.destroy();
      });
    });
  }

  return {
    /** Answers a request for `/graphql`. */
    handle(request: IncomingMessage, response: ServerResponse): void {
      const incoming = intake.bodyOf(request, response, onCut);
      const respond = (operation: Operation) => respondByGraphql(request, incoming, operation);
      enter({ request, response, respond }, () => startOperationSpan(tracing, request));
    },
    /** Answers a request for a path below `/watch/`. */
    handleWatch(request: IncomingMessage, response: ServerResponse): void {
      // A watch has no body: what comes is discarded, also while it waits for its turn.
      request.resume();
      const watched = watchedBy(request);
      const kind = watched && kinds[watched.kind];
      const respond = (operation: Operation) => watch(request, watched, operation);
      enter({ request, response, watch: { kind: kind?.name }, respond }, () =>
        startWatchSpan(tracing, request, kind?.resource),
      );
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
  readonly respond: (operation: Operation) => Promise<Answer>;
}

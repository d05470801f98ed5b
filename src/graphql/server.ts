import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import { inAccount } from "../auth/identify.ts";
import { UnderWay } from "../collections/under-way.ts";
import { replayedHeader } from "../core/idempotency.ts";
import type { GatewayError } from "../errors.ts";
import { Heartbeats } from "../live/heartbeats.ts";
import { kinds } from "../model/kinds.ts";
import { type Admission, createAdmission, type Slot } from "../net/admission.ts";
import type { Cut } from "../net/cut.ts";
import { type Body, Intake } from "../net/intake.ts";
import type { Misdirection } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import { noReport } from "../report.ts";
import { noTracing, type Span } from "../telemetry/tracing/tracing.ts";
import { callOf, operationTimeoutMs } from "./context.ts";
import { credentialsOf } from "./credentials.ts";
import type { Edge } from "./edge.ts";
import { createErrorFormatter } from "./errors.ts";
import { watchSpelling } from "./field-names.ts";
import { createHttpPath } from "./http-path.ts";
import {
  Operation,
  type OperationRequest,
  startOperationSpan,
  startWatchSpan,
} from "./operation.ts";
import { createOperations } from "./operations.ts";
import { createOverload } from "./overload.ts";
import { bodyTaker } from "./request-body.ts";
import { schema as fullSchema } from "./schema/schema.ts";
import { type Answer, takesParts } from "./transport/event-stream.ts";
import { answerHeaders } from "./transport/headers.ts";
import { sendAnswer } from "./transport/send.ts";
import type { DrainTimes } from "./transport/socket-drain.ts";
import { createWatchPath, watchedBy } from "./transport/watch.ts";
import { serveWebSockets } from "./transport/websocket.ts";
import { createDocumentOf, type TrustedDocumentsOptions } from "./trusted-documents.ts";

export interface GraphqlServerOptions
  extends Pick<Edge, "core" | "identify" | "log">,
    Partial<Pick<Edge, "schema" | "report" | "tracing" | "corsOrigins" | "intake" | "timeoutMs">> {
  /** Turns GraphiQL off. */
  readonly production: boolean;
  /** Whether introspection works and errors suggest schema names. Default: not in production. */
  readonly introspection?: boolean;
  /** Documents that requests may name by their ids. Default: none. */
  readonly trustedDocuments?: TrustedDocumentsOptions;
  /**
   * Longest silence on an event stream, interval of pings on a WebSocket, and how long its client
   * may take to answer one, in milliseconds. Default: 15,000.
   */
  readonly heartbeatMs?: number;
  /** Decides which operations start. Default: all do. */
  readonly admission?: Admission;
}

export interface GraphqlServer {
  /** Answers a request for `/graphql`. */
  handle(request: IncomingMessage, response: ServerResponse): void;
  /** Answers a request for a path below `/watch/`. */
  handleWatch(request: IncomingMessage, response: ServerResponse): void;
  /**
   * Serves `graphql-transport-ws` at `/graphql` of a listener, and answers all of its upgrade
   * requests. The returned function stops serving and closes each socket when its operations are
   * over.
   * @param misdirection which upgrade requests are refused by their headers alone
   */
  attachWebSocket(
    server: Server,
    misdirection?: Misdirection,
  ): (times: DrainTimes) => Promise<void>;
  /**
   * Ends the queries and mutations without a response: their clients receive `reason`, or an
   * unknown outcome where money may have moved. Live streams end when the core ends them.
   */
  endCalls(reason: GatewayError): void;
}

/**
 * The GraphQL edge: queries and mutations by POST (queries by GET too), subscriptions by
 * Server-Sent Events, WebSocket and Apollo's multipart protocol. The plain watches of `/watch` use
 * the same streams.
 */
export function createGraphqlServer(options: GraphqlServerOptions): GraphqlServer {
  const { core, identify, log, report = noReport, production, corsOrigins = [] } = options;
  const { schema = fullSchema, tracing = noTracing } = options;
  const { timeoutMs = operationTimeoutMs, heartbeatMs = defaultHeartbeatMs } = options;
  const { introspection = !production } = options;
  const formatError = createErrorFormatter(log);
  const { admission = createAdmission({ maxCalls: undefined }) } = options;
  const { intake = new Intake({ admission }) } = options;
  const onCut = (limit: Cut) => report("cut", { listener: "public", limit });
  const overload = createOverload({ admission, report, formatError, corsOrigins });
  const operations = createOperations({ schema, introspection, formatError, overload });
  const documentOf = createDocumentOf(schema, options.trustedDocuments);
  const underWay = new UnderWay<AbortController>();
  const heartbeats = new Heartbeats(heartbeatMs);
  const edge: Edge = {
    ...{ core, schema, operations, identify, log, report, tracing, formatError, documentOf },
    ...{ corsOrigins, overload, intake, onCut, timeoutMs, heartbeats, underWay },
  };

  const answerHttp = createHttpPath(edge, { graphiql: !production });
  const watch = createWatchPath({
    ...edge,
    formatError: createErrorFormatter(log, watchSpelling),
  });

  /** Answers a request by what `respond` makes of it, and records the operation. */
  async function answer(
    { request, response, watch, respond }: Exchange,
    span: Span,
    slot: Slot,
  ): Promise<void> {
    const { headers: sent, method } = request;
    const requestId = requestIdOf(sent[requestIdHeader]?.toString());
    const inParts = !watch && takesParts(sent.accept ?? "");
    const credentials = credentialsOf(request);
    const operation = new Operation(edge, {
      ...{ requestId, connection: "http", span, slot },
      ...(watch && { watch }),
      streamsBy: inParts ? "multipart" : "sse",
      idempotencyKey: sent["idempotency-key"]?.toString(),
      isGet: method === "GET",
      lastEventId: sent["last-event-id"]?.toString(),
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
    await sendAnswer({ ...answered, headers }, response, heartbeats);
  }

  async function respondByGraphql(
    request: IncomingMessage,
    incoming: Body,
    operation: Operation,
  ): Promise<Answer> {
    const { slot } = operation.request;
    const taker = bodyTaker(incoming, intake, request.socket, slot);
    const answered = await answerHttp(request, taker, operation);
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
    handle(request, response) {
      const incoming = intake.bodyOf(request, response, onCut);
      const respond = (operation: Operation) => respondByGraphql(request, incoming, operation);
      enter({ request, response, respond }, () => startOperationSpan(tracing, request));
    },
    handleWatch(request, response) {
      // A watch has no body: what comes is discarded, also while it waits for its turn.
      request.resume();
      const watched = watchedBy(request);
      const kind = watched && kinds[watched.kind];
      const respond = (operation: Operation) => watch(request, watched, operation);
      enter({ request, response, watch: { kind: kind?.name }, respond }, () =>
        startWatchSpan(tracing, request, kind?.resource),
      );
    },
    attachWebSocket: (server, misdirection) => serveWebSockets(server, edge, misdirection),
    endCalls(reason) {
      for (const call of underWay) call.abort(reason);
    },
  };
}

/** A request, its response, and what the one makes of the other. */
interface Exchange extends Pick<OperationRequest, "watch"> {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly respond: (operation: Operation) => Promise<Answer>;
}

const defaultHeartbeatMs = 15_000;

import type { IncomingMessage, OutgoingHttpHeaders, Server, ServerResponse } from "node:http";
import { inAccount } from "../auth/identify.ts";
import { UnderWay } from "../collections/under-way.ts";
import { replayedHeader } from "../core/idempotency.ts";
import type { GatewayError } from "../errors.ts";
import { Heartbeats } from "../live/heartbeats.ts";
import { type Admission, createAdmission, type Slot } from "../net/admission.ts";
import type { Cut } from "../net/cut.ts";
import { type Body, Intake } from "../net/intake.ts";
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
import { Operation, startOperationSpan } from "./operation.ts";
import { createOperations } from "./operations.ts";
import { createOverload } from "./overload.ts";
import { bodyTaker } from "./request-body.ts";
import { schema as fullSchema } from "./schema/schema.ts";
import { takesParts } from "./transport/event-stream.ts";
import { answerHeaders } from "./transport/headers.ts";
import { sendAnswer } from "./transport/send.ts";
import type { DrainTimes } from "./transport/socket-drain.ts";
import { createWatchEndpoint } from "./transport/watch.ts";
import { type Misdirection, serveWebSockets } from "./transport/websocket.ts";
import { createDocumentOf, type TrustedDocumentsOptions } from "./trusted-documents.ts";

export interface GraphqlServerOptions extends Pick<Edge, Given>, Partial<Pick<Edge, Defaulted>> {
  /** Turns GraphiQL off. */
  readonly production: boolean;
  /** Whether introspection works and errors suggest schema names. Default: not in production. */
  readonly introspection?: boolean;
  /** Documents that requests may name by their ids. Default: none. */
  readonly trustedDocuments?: TrustedDocumentsOptions;
  /** Decides which operations start. Default: all do. */
  readonly admission?: Admission;
}

type Given = "core" | "identify" | "log";
type Defaulted =
  | "schema"
  | "report"
  | "tracing"
  | "corsOrigins"
  | "intake"
  | "timeoutMs"
  | "heartbeatMs";

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
    ...{ corsOrigins, overload, intake, onCut, timeoutMs, heartbeatMs, heartbeats, underWay },
  };

  const answerHttp = createHttpPath(edge, { graphiql: !production });
  const watch = createWatchEndpoint({
    ...edge,
    formatError: createErrorFormatter(log, watchSpelling),
  });

  async function answer(
    request: IncomingMessage,
    response: ServerResponse,
    incoming: Body,
    span: Span,
    slot: Slot,
  ): Promise<void> {
    const requestId = requestIdOf(request.headers[requestIdHeader]?.toString());
    const streamsBy = takesParts(request.headers.accept ?? "") ? "multipart" : "sse";
    const credentials = credentialsOf(request);
    const operation = new Operation(edge, {
      ...{ requestId, connection: "http", streamsBy, span, slot },
      idempotencyKey: request.headers["idempotency-key"]?.toString(),
      isGet: request.method === "GET",
      lastEventId: request.headers["last-event-id"]?.toString(),
      acceptLanguage: request.headers["accept-language"] ?? null,
      authenticate: (account) =>
        identify(account === undefined ? credentials : inAccount(credentials, account)),
    });
    let whole = false;
    response.on("close", () => {
      if (response.writableFinished) settle();
      else leaveInTurn(settle);
    });
    const settle = () => {
      if (!response.writableFinished) operation.failed("CANCELLED");
      span.set({ "http.response.status_code": response.statusCode });
      operation.end(whole);
    };
    const headers: OutgoingHttpHeaders = {
      [requestIdHeader]: requestId,
      ...answerHeaders(request.headers.origin, corsOrigins),
    };

    /** Adds what is known only after the operation. */
    const addLateHeaders = (headers: OutgoingHttpHeaders) => {
      const { caller, movesMoney, retryAfterSeconds } = operation;
      if (!caller) return;
      if (operation.isReplay) headers[replayedHeader] = "true";
      if (retryAfterSeconds !== undefined) headers["retry-after"] = String(retryAfterSeconds);
      const budget = core.rateLimit(callOf(caller, operation));
      Object.assign(headers, rateLimitHeaders(budget, movesMoney));
    };
    const answered = await answerHttp(
      request,
      bodyTaker(incoming, intake, request.socket, slot),
      operation,
    );
    incoming.discard();
    // The client left before its whole body had arrived.
    if (request.destroyed && !request.complete) return void response.destroy();
    whole = answered.whole === true;
    // Give the slot back before writing: a client that does not read must not hold it.
    slot.leave();
    if (typeof answered.body !== "object") addLateHeaders(headers);
    Object.assign(headers, answered.headers);
    await sendAnswer({ ...answered, headers }, response, heartbeats);
  }

  function cutIfFailed(answering: Promise<void>, response: ServerResponse): void {
    answering.catch((error) => {
      if (!response.destroyed) log.error({ err: error }, "response not sent");
      response.destroy();
    });
  }

  return {
    handle(request, response) {
      const incoming = intake.bodyOf(request, onCut);
      overload.enterByHttp(request, response, (slot) => {
        const span = startOperationSpan(tracing, request);
        span.run(() => cutIfFailed(answer(request, response, incoming, span, slot), response));
      });
    },
    handleWatch(request, response) {
      // A watch has no body: what comes is discarded, also while it waits for its turn.
      request.resume();
      overload.enterByHttp(request, response, (slot) =>
        cutIfFailed(watch(request, response, slot), response),
      );
    },
    attachWebSocket: (server, misdirection) => serveWebSockets(server, edge, misdirection),
    endCalls(reason) {
      for (const call of underWay) call.abort(reason);
    },
  };
}

const defaultHeartbeatMs = 15_000;

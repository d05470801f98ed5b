import type { IncomingMessage, ServerResponse } from "node:http";
import type { GraphQLError, OperationTypeNode } from "graphql";
import type { WebSocket } from "ws";
import type { Admission, CallKind, Slot } from "../net/admission.ts";
import { overloaded, turnOf } from "../net/overloaded.ts";
import type { Report } from "../report.ts";
import { httpOfOverload, problemOf, problemType, withoutHttp } from "./errors.ts";
import type { Operation } from "./operation.ts";
import { graphqlType } from "./transport/accept.ts";
import { answerHeaders } from "./transport/headers.ts";
import { eventStreamType, reconnectMs } from "./transport/stream-format.ts";

interface OverloadOptions {
  /** Origins whose pages may read a refusal. */
  readonly corsOrigins: readonly string[];
  readonly admission: Admission;
  readonly report: Report;
  readonly formatError: (error: unknown) => GraphQLError;
}

export type Overload = ReturnType<typeof createOverload>;

/** Rejects operations while the process is overloaded. */
export function createOverload(options: OverloadOptions) {
  const { admission, report, formatError, corsOrigins } = options;
  const refused = (kind: CallKind) => report("refused", { listener: "public", kind });
  const refusal = formatError(overloaded());
  const body = JSON.stringify({ errors: [withoutHttp(refusal)] });
  const problem = problemOf(refusal, httpOfOverload.status);

  function answer(request: IncomingMessage, response: ServerResponse): void {
    const { accept = "", origin } = request.headers;
    const headers = answerHeaders(origin, corsOrigins);
    if (isWatch(request)) {
      // An EventSource gives up after any status but 200. This response makes it reconnect.
      response.writeHead(200, { ...headers, "content-type": eventStreamType });
      response.end(`retry: ${reconnectMs(undefined)}\n\n`);
      return;
    }
    const type = accept.includes(graphqlType) ? graphqlType : "application/json";
    const [contentType, text] = request.url?.startsWith(watchPath)
      ? [problemType, problem]
      : [`${type}; charset=utf-8`, body];
    response.writeHead(httpOfOverload.status, {
      ...headers,
      ...httpOfOverload.headers,
      "content-type": contentType,
      "content-length": Buffer.byteLength(text),
    });
    response.end(text);
  }

  return {
    /** Called before a request's body is read: starts it in its turn, or answers with a refusal. */
    enterByHttp(
      request: IncomingMessage,
      response: ServerResponse,
      start: (slot: Slot) => void,
    ): void {
      // A preflight is exempt: it costs nothing, and a page needs it to read the refusal.
      const kind = kindOf(request);
      admission.enter({
        kind,
        owner: request.socket,
        isGone: () => request.socket.destroyed,
        start,
        refuse() {
          refused(kind);
          answer(request, response);
        },
      });
    },
    /**
     * Resolves in the operation's turn, even if the socket is closed by then.
     * @throws GatewayError RESOURCE_EXHAUSTED
     */
    enterBySocket: (socket: WebSocket) =>
      turnOf(admission, "unknown", socket, () => refused("unknown")),
    /**
     * Refuses an operation that was admitted only because it could move money, but is a query or a
     * new stream by its document.
     * @throws AggregateError
     */
    refuseOthers(type: OperationTypeNode, { request }: Pick<Operation, "request">): void {
      if (!request.slot.moneyOnly || type === "mutation") return;
      refused("other");
      throw new AggregateError([refusal]);
    },
  };
}

function kindOf(request: IncomingMessage): CallKind {
  if (request.method === "OPTIONS") return "exempt";
  if (isWatch(request)) return "watch";
  return request.method === "GET" ? "other" : "unknown";
}

/** Whether a request is for an event stream, as an EventSource sends it. */
function isWatch({ method, url, headers }: IncomingMessage): boolean {
  const { accept = "" } = headers;
  return method === "GET" && (accept.includes(eventStreamType) || !!url?.startsWith(watchPath));
}

/** Prefix of the watches: `/watch/payments/{external_id}` and `/watch/payouts/{external_id}`. */
const watchPath = "/watch/";

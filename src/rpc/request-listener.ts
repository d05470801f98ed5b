import { type IncomingMessage, ServerResponse } from "node:http";
import { constants, Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import { Code, ConnectError, type ConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import { withAnswer } from "./answer.ts";
import type { Log } from "./log.ts";
import { capTimeout, maxTimerMs } from "./timeout-header.ts";

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;

export interface RequestLimits {
  /** Longest a unary call may take, whatever its caller asks for. */
  readonly maxUnaryTimeoutMs: number;
  /** Longest the body of a request may take to arrive. */
  readonly requestTimeoutMs: number;
}

/**
 * Hands requests of Node's servers to the methods of a router. Nothing that a request holds can throw
 * here: an address that is none gets 400, an unknown path 404.
 */
export function createRequestListener(
  router: ConnectRouter,
  limits: RequestLimits,
  log: Log,
): (request: Request, response: Response) => void {
  const methods = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (request, response) => {
    const handler = methods.get(request.url?.split("?", 1)[0] ?? "");
    if (!handler) return refuse(response, 404);
    const unary = handler.method.methodKind === "unary";
    capTimeout(request.headers, unary ? limits.maxUnaryTimeoutMs : maxTimerMs);
    let call: ReturnType<typeof universalRequestFromNodeRequest>;
    try {
      const values = withAnswer(createContextValues(), response);
      call = universalRequestFromNodeRequest(request, response, undefined, values);
    } catch {
      return refuse(response, 400);
    }
    if (sendsWholeBody(handler)) limitBody(request, limits.requestTimeoutMs);
    handler(call)
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((error: unknown) => {
        if (!response.writableEnded) cut(response);
        // The client went away: its call has been recorded as cancelled.
        if (ConnectError.from(error).code === Code.Aborted) return;
        log.warn({ path: handler.requestPath, err: error }, "answer not written");
      });
  };
}

function refuse(response: Response, status: number): void {
  response.statusCode = status;
  response.end();
}

function cut(response: Response): void {
  if (response instanceof ServerResponse) response.destroy();
  else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

function sendsWholeBody(handler: UniversalHandler): boolean {
  const kind = handler.method.methodKind;
  return kind === "unary" || kind === "server_streaming";
}

/** Ends a request whose body stalls. HTTP/1.1 has this in Node, HTTP/2 has not. */
function limitBody(request: Request, timeoutMs: number): void {
  if (!(request instanceof Http2ServerRequest)) return;
  const { stream } = request;
  const timer = setTimeout(() => stream.close(constants.NGHTTP2_CANCEL), timeoutMs);
  const arrived = () => clearTimeout(timer);
  stream.once("end", arrived);
  stream.once("close", arrived);
}

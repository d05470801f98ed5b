import { type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants, type Http2ServerResponse } from "node:http2";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from "@connectrpc/connect-node";
import type { Slot } from "../net/admission.ts";
import type { RequestHead, Response } from "../net/request-head.ts";
import { capTimeout } from "../net/timeout-header.ts";
import { maxTimerMs } from "../net/timer.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import { type AdmissionGate, isOpenService } from "./admission-gate.ts";
import { valuesOf } from "./answer.ts";
import type { Log } from "./call-record.ts";
import type { FastPath } from "./fast-path.ts";
import { withReadableMessage } from "./grpc-message.ts";
import { openapiPath, serveOpenapi } from "./openapi.ts";
import { bodyForConnect, type ReceiveOptions } from "./request-body.ts";

export interface RequestLimits {
  /** Longest a unary call may take, whatever its caller asks for, in milliseconds. */
  readonly maxUnaryTimeoutMs: number;
  /** Longest the body of a request may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Largest request message, in bytes, before and after decompression. */
  readonly readMaxBytes: number;
}

/**
 * Passes requests of Node's servers to the methods of a router. No request can make it throw: an
 * invalid URL gets 400, an unknown path 404.
 */
export function createRequestListener(
  router: ConnectRouter,
  limits: RequestLimits & ReceiveOptions,
  log: Log,
  tracing: Tracing,
  gate: AdmissionGate,
  fastPath: FastPath | undefined,
): (head: RequestHead) => void {
  const methods = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (head) => {
    const path = head.url.split("?", 1)[0] ?? "";
    const handler = methods.get(path);
    if (!handler) return path === openapiPath ? void serveOpenapi(head) : head.answer(404, {});
    gate.enter({ handler, head, start: (slot) => serve(handler, head, slot) });
  };

  function serve(handler: UniversalHandler, head: RequestHead, slot: Slot): void {
    const unary = handler.method.methodKind === "unary";
    capTimeout(head.headers, unary ? limits.maxUnaryTimeoutMs : maxTimerMs);
    // Health checks and reflection are not traced: they would be most of all traces.
    const standard = handler.requestPath.startsWith("/grpc.");
    const span = startSpan(standard ? noTracing : tracing, handler, head);
    endWith(head, span);
    const fast = fastPath?.callOf(handler, head);
    span.run(() => {
      if (!fast) return serveByConnect(handler, head, slot);
      fast(slot).then(
        (body) => body && serveByConnect(handler, head, slot, body),
        (error: unknown) => {
          slot.leave();
          head.answer(500, {});
          log.error(
            { path: handler.requestPath, err: error },
            "unexpected error: call not answered",
          );
        },
      );
    });
  }

  function serveByConnect(
    handler: UniversalHandler,
    head: RequestHead,
    slot: Slot,
    body?: Uint8Array,
  ): void {
    const { ending } = head;
    const { request, response } = head.open();
    const addTrailers = response.addTrailers.bind(response);
    response.addTrailers = (trailers: OutgoingHttpHeaders) =>
      addTrailers(withReadableMessage(trailers));
    // A stream gives its slot back when it begins.
    if (handler.method.methodKind !== "unary") slot.leave();
    // Browsers and proxies may cache reads by GET, but their responses change and are confidential.
    response.setHeader("cache-control", "no-store");
    let call: ReturnType<typeof universalRequestFromNodeRequest>;
    try {
      const incoming = {
        url: head.url,
        ending,
        leave: slot.leave,
        response,
        sendHeaders: (header: Headers) => sendHeaders(response, header),
      };
      const values = valuesOf(incoming);
      call = universalRequestFromNodeRequest(request, response, undefined, values);
      const isOpen = isOpenService(handler);
      const reading = { handler, head, header: call.header, slot, received: body, isOpen };
      call = { ...call, body: bodyForConnect(reading, limits) };
      // What was not read is discarded: the next request on the connection waits behind it.
      response.once("finish", () => head.body.discard());
    } catch {
      slot.leave();
      refuse(response, 400);
      return;
    }
    handler(call)
      // Before the response is written: an unread response must not hold a slot.
      .finally(slot.leave)
      .then((answer) => {
        if (answer.status === 405) response.setHeader("allow", handler.allowedMethods.join(", "));
        return universalResponseToNodeResponse(answer, response);
      })
      .catch((error: unknown) => {
        if (!response.writableEnded) cut(response);
        // The client has left: its call is already recorded as cancelled.
        if (ConnectError.from(error).code === Code.Aborted) return;
        log.warn({ path: handler.requestPath, err: error }, "response not written");
      });
  }
}

/** Ends the span with the request. The callback retains only the span, nothing of the request. */
function endWith(head: RequestHead, span: Span): void {
  head.onClose(() => span.end());
}

/** Starts the call's span; the call record adds the outcome. */
function startSpan(
  tracing: Tracing,
  { requestPath }: UniversalHandler,
  { headers, httpVersion }: RequestHead,
): Span {
  const [, service = "", method = ""] = requestPath.split("/");
  const grpc = headers["content-type"]?.startsWith("application/grpc");
  return tracing.start(`${service}/${method}`, {
    kind: "server",
    parent: (name) => headers[name]?.toString(),
    attributes: () => ({
      "rpc.system.name": grpc ? "grpc" : "connectrpc",
      "rpc.method": `${service}/${method}`,
      "rpc.system": grpc ? "grpc" : "connect_rpc",
      "rpc.service": service,
      "network.protocol.name": "http",
      "network.protocol.version": httpVersion,
    }),
  });
}

function refuse(response: Response, status: number): void {
  response.statusCode = status;
  response.end();
}

function cut(response: Response): void {
  if (response instanceof ServerResponse) response.destroy();
  else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

/**
 * Sends the headers of a stream's response before its first message. Connect waits for that
 * message, so that handlers can still add headers. A watch adds none, and its caller needs the
 * headers to see that the watch has begun. The status of a stream is 200 in every protocol, however
 * the stream ends.
 */
function sendHeaders(response: ServerResponse | Http2ServerResponse, header: Headers): void {
  if (response.headersSent || response.writableEnded) return;
  for (const [name, value] of header) response.setHeader(name, value);
  // Connect would write the same headers again with the first message: make that a no-op.
  if (response instanceof ServerResponse) {
    response.flushHeaders();
    response.writeHead = () => response;
  } else {
    response.writeHead(200);
    response.writeHead = () => response;
  }
}

import { type OutgoingHttpHeaders, ServerResponse } from "node:http";
import { constants } from "node:http2";
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
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";
import type { AdmissionGate } from "./admission-gate.ts";
import type { Log } from "./call-record.ts";
import { withReadableMessage } from "./grpc-message.ts";
import type { Methods } from "./methods.ts";
import { bodyOfOpenCall, type ReceiveOptions } from "./request-body.ts";
import type { ServedMethod } from "./served-call.ts";

export interface RequestLimits {
  /** Longest a unary call may take, whatever its caller asks for, in milliseconds. */
  readonly maxUnaryTimeoutMs: number;
  /** Longest the body of a request may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Largest request message, in bytes, before and after decompression. */
  readonly readMaxBytes: number;
}

/**
 * Passes requests of Node's servers to the methods of the contract, and to those that a router
 * serves by Connect's own handlers: they need no credentials. No request can make it throw: an
 * invalid URL gets 400, an unknown path 404.
 */
export function createRequestListener(
  router: ConnectRouter,
  limits: RequestLimits & ReceiveOptions,
  log: Log,
  tracing: Tracing,
  gate: AdmissionGate,
  methods: Methods,
): (head: RequestHead) => void {
  const served = new Map(methods.all.map((method) => [method.requestPath, method]));
  const open = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  return (head) => {
    const path = head.url.split("?", 1)[0] ?? "";
    const method = served.get(path);
    if (method) {
      return gate.enter({ handler: method, head, start: (slot) => serve(method, head, slot) });
    }
    const handler = open.get(path);
    if (!handler) return path === openapiPath ? void serveOpenapi(head) : head.answer(404, {});
    gate.enter({ handler, head, start: (slot) => serveByConnect(handler, head, slot) });
  };

  function serve(method: ServedMethod, head: RequestHead, slot: Slot): void {
    const isUnary = method.method.methodKind === "unary";
    capTimeout(head.headers, isUnary ? limits.maxUnaryTimeoutMs : maxTimerMs);
    const span = startSpan(tracing, method, head);
    endWith(head, span);
    span.run(() =>
      methods.serve(method, head, slot).catch((error: unknown) => {
        slot.leave();
        head.answer(500, {});
        log.error({ path: method.requestPath, err: error }, "unexpected error: call not answered");
      }),
    );
  }

  /** Health checks and reflection are not traced: they would be most of all traces. */
  function serveByConnect(handler: UniversalHandler, head: RequestHead, slot: Slot): void {
    const { methodKind } = handler.method;
    capTimeout(head.headers, methodKind === "unary" ? limits.maxUnaryTimeoutMs : maxTimerMs);
    const { request, response } = head.open();
    const addTrailers = response.addTrailers.bind(response);
    response.addTrailers = (trailers: OutgoingHttpHeaders) =>
      addTrailers(withReadableMessage(trailers));
    // A stream gives its slot back when it begins.
    if (methodKind !== "unary") slot.leave();
    // Proxies may cache responses, but those here change.
    response.setHeader("cache-control", "no-store");
    let call: ReturnType<typeof universalRequestFromNodeRequest>;
    try {
      call = universalRequestFromNodeRequest(request, response, undefined, undefined);
      call = { ...call, body: bodyOfOpenCall(head, handler.method, limits) };
      // What was not read is discarded: the next request on the connection waits behind it.
      response.once("finish", () => head.body.discard());
    } catch {
      slot.leave();
      response.statusCode = 400;
      response.end();
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
  { requestPath }: ServedMethod,
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

function cut(response: Response): void {
  if (response instanceof ServerResponse) response.destroy();
  else response.stream.close(constants.NGHTTP2_INTERNAL_ERROR);
}

/** Where the rpc listener serves openapi.json. */
const openapiPath = "/openapi.json";

/**
 * Answers with the description of the unary methods as JSON over HTTP. It needs no credentials, as
 * reflection does not: it holds nothing but the public contract.
 */
async function serveOpenapi({ method, answer }: RequestHead): Promise<void> {
  if (method !== "GET" && method !== "HEAD") return answer(405, { allow: "GET, HEAD" });
  document ??= load();
  const body = await document;
  const headers = {
    "content-type": "application/json",
    "content-length": String(body.byteLength),
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
  };
  answer(200, headers, method === "HEAD" ? undefined : body);
}

let document: Promise<Buffer> | undefined;

async function load(): Promise<Buffer> {
  const { default: json } = await import("../../openapi.json", { with: { type: "json" } });
  return Buffer.from(JSON.stringify(json));
}

import { oncePer } from "../collections/once-per.ts";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import { overloaded } from "../net/overloaded.ts";
import {
  emptyResponse,
  type HttpResponse,
  isAuthority,
  type RequestHead,
} from "../net/request-head.ts";
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";
import { toConnectError } from "./errors.ts";
import { type ArrivedCall, isBidi, type ServedMethod, type ServingOptions } from "./methods.ts";
import { type Asked, anyProtocolOf, askedBy, failureOf, type Protocol } from "./protocols.ts";
import { serveStream } from "./stream-path.ts";
import { serveUnary } from "./unary-path.ts";

/**
 * Passes requests to the methods that they name, as calls: each is admitted in its turn, or refused
 * before any work on it. No request can make it throw: an unknown path gets 404.
 */
export function createRequestListener(
  options: ServingOptions,
  served: readonly ServedMethod[],
): (head: RequestHead) => void {
  const { admission, misdirection, tracing, log, report } = options;
  const methods = new Map(served.map((method) => [method.requestPath, method]));
  const takesOpenStream = limitOpenStreams(options.limits.maxConnections);
  const refuse = createRefusal(overloaded());

  return (head) => {
    const misdirected = misdirection?.(head.headers);
    if (misdirected) {
      const { message, status } = misdirected;
      createRefusal(new GatewayError("PERMISSION_DENIED", message), status)(head);
      return;
    }
    const path = head.url.split("?", 1)[0] ?? "";
    const method = methods.get(path);
    try {
      if (method) enter(method, head);
      else if (path !== openapiPath) head.answer(emptyResponse(404));
      else serveOpenapi(head).catch((error: unknown) => failed(head, path, error));
    } catch (error) {
      failed(head, path, error);
    }
  };

  function enter(method: ServedMethod, head: RequestHead): void {
    const asked = askedOf(method, head);
    const isCall = !("status" in asked);
    const { kind, isOpen, isUnary } = method;
    if (isOpen && !isUnary && !takesOpenStream(head)) {
      report("cut", { listener: "rpc", limit: "open_streams" });
      refuse(head);
      return;
    }
    admission.enter({
      kind,
      owner: head.connection,
      timeoutMs: isCall ? asked.timeoutMs : undefined,
      isGone: head.isGone,
      start(slot) {
        if (isCall) return start({ method, head, asked, slot, options });
        slot.leave();
        head.answer(asked);
      },
      refuse(kind) {
        report("refused", { listener: "rpc", kind });
        refuse(head);
      },
    });
  }

  function start(arrived: ArrivedCall): void {
    const { method, head } = arrived;
    // Health checks and reflection are not traced: they would be most of all traces.
    if (method.isOpen) return void serveSafely(arrived);
    const span = startSpan(tracing, method, head);
    endWith(head, span);
    span.run(() => serveSafely(arrived));
  }

  /** Resolves once the call is answered or its stream has begun. */
  function serveSafely(arrived: ArrivedCall): Promise<void> {
    const { method, head, slot } = arrived;
    // A stream gives its slot back when it begins.
    if (!method.isUnary) slot.leave();
    return (method.isUnary ? serveUnary : serveStream)(arrived).catch((error: unknown) => {
      slot.leave();
      failed(head, method.requestPath, error);
    });
  }

  function failed(head: RequestHead, path: string, error: unknown): void {
    head.answer(emptyResponse(500));
    log.error({ path, err: error }, "unexpected error: call not answered");
  }
}

/**
 * Limits the streams that need no credentials, on each connection and of all together. The returned
 * function counts one until its request is over; it returns false if that would be too many.
 */
function limitOpenStreams(maxConnections: number = 10_000): (head: RequestHead) => boolean {
  const ofConnection = oncePer((_: object) => new UnderWay<true>());
  // Each keeps its connection from counting as idle: they may hold but a share of the connections.
  const most = Math.min(1_000, Math.max(1, Math.floor(maxConnections / 10)));
  const all = new UnderWay<true>();

  return ({ connection, onClose }) => {
    const own = ofConnection(connection);
    if (own.size >= openStreamsPerConnection || all.size >= most) return false;
    for (const member of [own.add(true), all.add(true)]) onClose(() => member.leave());
    return true;
  };
}

/** A client usually watches the health of one or two services. */
export const openStreamsPerConnection = 10;

/**
 * Refuses requests with an error, in the protocol of their content type. It is encoded once: a
 * gateway that has more calls than it can serve must spend next to nothing on those that it refuses.
 * @param status instead of the error's own, where the error is not in an envelope, as a part of a
 * response that succeeds
 */
function createRefusal(error: GatewayError, status?: number): (head: RequestHead) => void {
  const answerIn = oncePer((protocol: Protocol) => {
    const answer = failureOf(protocol, toConnectError(error), {});
    return status !== undefined && protocol.extraBytes === 0 ? { ...answer, status } : answer;
  });
  return (head) => head.answer(answerIn(anyProtocolOf(head.headers["content-type"])));
}

/** What a request asks for, or the answer to one that is no call. */
function askedOf(method: ServedMethod, head: RequestHead): Asked | HttpResponse {
  const { headers } = head;
  // Whether the request names its host as a URL can.
  if (!isAuthority(headers[":authority"]?.toString() ?? headers.host ?? "")) return refusal(400);
  // A client that expects to read while it writes would hang on this connection.
  if (isBidi(method) && head.httpVersion === "1.1") return refusal(505, { connection: "close" });
  if (!method.allowedMethods.includes(head.method)) {
    return refusal(405, { allow: method.allowedMethods.join(", ") });
  }
  return askedBy(head, method) ?? refusal(415);
}

function refusal(status: number, headers: HttpResponse["headers"] = {}): HttpResponse {
  return emptyResponse(status, { "cache-control": "no-store", ...headers });
}

/** Ends the span with the request. The callback retains only the span, nothing of the request. */
function endWith(head: RequestHead, span: Span): void {
  head.onClose(() => span.end());
}

/** Starts the call's span; the call record adds the outcome. */
function startSpan(
  tracing: Tracing,
  { method: { parent }, requestPath }: ServedMethod,
  { headers, httpVersion }: RequestHead,
): Span {
  const method = requestPath.slice(1);
  const grpc = headers["content-type"]?.startsWith("application/grpc");
  return tracing.start(method, {
    kind: "server",
    parent: (header) => headers[header]?.toString(),
    attributes: () => ({
      "rpc.system.name": grpc ? "grpc" : "connectrpc",
      "rpc.method": method,
      "rpc.system": grpc ? "grpc" : "connect_rpc",
      "rpc.service": parent.typeName,
      "network.protocol.name": "http",
      "network.protocol.version": httpVersion,
    }),
  });
}

/** Where the rpc listener serves openapi.json. */
const openapiPath = "/openapi.json";

/**
 * Answers with the description of the unary methods as JSON over HTTP. It needs no credentials, as
 * reflection does not: it holds nothing but the public contract.
 */
async function serveOpenapi({ method, answer }: RequestHead): Promise<void> {
  if (method !== "GET" && method !== "HEAD")
    return answer(emptyResponse(405, { allow: "GET, HEAD" }));
  // Not at the start, which it would make longer by a fifth.
  if (!document) {
    const { default: json } = await import("../../openapi.json", { with: { type: "json" } });
    document = Buffer.from(JSON.stringify(json));
  }
  const headers = {
    "content-type": "application/json",
    "content-length": String(document.byteLength),
    "cache-control": "no-cache",
    "x-content-type-options": "nosniff",
  };
  answer({ status: 200, headers, body: method === "HEAD" ? "" : document });
}

let document: Buffer | undefined;

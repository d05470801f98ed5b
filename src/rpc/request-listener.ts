import type { Slot } from "../net/admission.ts";
import { emptyResponse, type RequestHead } from "../net/request-head.ts";
import type { Logger } from "../report.ts";
import type { Span, Tracing } from "../telemetry/tracing/tracing.ts";
import type { AdmissionGate } from "./admission-gate.ts";
import type { Methods } from "./methods.ts";
import type { ServedMethod } from "./served-call.ts";

/**
 * Passes requests of Node's servers to the methods that they name. No request can make it throw: an
 * unknown path gets 404.
 */
export function createRequestListener(
  methods: Methods,
  gate: AdmissionGate,
  tracing: Tracing,
  log: Logger,
): (head: RequestHead) => void {
  const served = new Map(methods.all.map((method) => [method.requestPath, method]));

  return (head) => {
    const path = head.url.split("?", 1)[0] ?? "";
    const method = served.get(path);
    if (!method) {
      if (path !== openapiPath) return head.answer(emptyResponse(404));
      return void serveOpenapi(head).catch((error: unknown) => failed(head, path, error));
    }
    gate(method, head, (slot) => start(method, head, slot));
  };

  function start(method: ServedMethod, head: RequestHead, slot: Slot): void {
    // Health checks and reflection are not traced: they would be most of all traces.
    if (method.isOpen) return void serve(method, head, slot);
    const span = startSpan(tracing, method, head);
    endWith(head, span);
    span.run(() => serve(method, head, slot));
  }

  function serve(method: ServedMethod, head: RequestHead, slot: Slot): Promise<void> {
    return methods.serve(method, head, slot).catch((error: unknown) => {
      slot.leave();
      failed(head, method.requestPath, error);
    });
  }

  function failed(head: RequestHead, path: string, error: unknown): void {
    head.answer(emptyResponse(500));
    log.error({ path, err: error }, "unexpected error: call not answered");
  }
}

/** Ends the span with the request. The callback retains only the span, nothing of the request. */
function endWith(head: RequestHead, span: Span): void {
  head.onClose(() => span.end());
}

/** Starts the call's span; the call record adds the outcome. */
function startSpan(
  tracing: Tracing,
  { method: { name, parent } }: ServedMethod,
  { headers, httpVersion }: RequestHead,
): Span {
  const method = `${parent.typeName}/${name}`;
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

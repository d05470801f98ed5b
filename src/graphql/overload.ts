import type { IncomingMessage } from "node:http";
import type { CallKind } from "../net/admission.ts";
import { overloaded } from "../net/overloaded.ts";
import { type FormatError, headOf } from "./errors.ts";
import { graphqlType, jsonType } from "./transport/accept.ts";
import type { Answer } from "./transport/answer.ts";
import { eventStreamType, reconnectMs } from "./transport/stream-format.ts";

/** How the limits treat a request, before its body is read. */
export function kindOf(request: IncomingMessage): CallKind {
  // A preflight costs nothing, and a page needs it to read the refusal.
  if (request.method === "OPTIONS") return "exempt";
  if (isStream(request)) return "watch";
  return request.method === "GET" ? "other" : "unknown";
}

/** Answers requests that are refused because of overload: an error is encoded once in each form. */
export function createRefusal(formatError: FormatError): (request: IncomingMessage) => Answer {
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

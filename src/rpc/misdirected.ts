import type { IncomingHttpHeaders } from "node:http";
import type { Request, Response } from "./request.ts";

/** Why a request may not come in, by its headers; undefined when it may. */
export type Misdirection = (
  headers: IncomingHttpHeaders,
) => { readonly status: number; readonly message: string } | undefined;

type Listener = (request: Request, response: Response, ending?: AbortSignal) => void;

/** Refuses misdirected requests before anything else is done, in the words of their protocol. */
export function refusesMisdirected(
  misdirection: Misdirection | undefined,
  listener: Listener,
): Listener {
  if (!misdirection) return listener;
  return (request, response, ending) => {
    const refused = misdirection(request.headers);
    if (!refused) return listener(request, response, ending);
    request.resume();
    const type = request.headers["content-type"] ?? "";
    if (type.startsWith("application/grpc")) {
      response.setHeader("content-type", type);
      response.setHeader("grpc-status", permissionDenied);
      response.setHeader("grpc-message", refused.message.replace(unfit, encodeURIComponent));
      response.end();
      return;
    }
    response.statusCode = refused.status;
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ code: "permission_denied", message: refused.message }));
  };
}

/** Of the status codes of gRPC. */
const permissionDenied = "7";
/** What a grpc-message holds percent-encoded: all but printable ASCII, and the sign itself. */
const unfit = /[^\x20-\x24\x26-\x7e]+/gu;

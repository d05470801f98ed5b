import type { IncomingHttpHeaders } from "node:http";
import type { RequestHead } from "../net/request-head.ts";
import { encodeGrpcMessage } from "./grpc-message.ts";

/** Why a request is refused because of its headers; undefined if it is not. */
export type Misdirection = (
  headers: IncomingHttpHeaders,
) => { readonly status: number; readonly message: string } | undefined;

type Listener = (head: RequestHead) => void;

/** Refuses misdirected requests before any other work, in the format of their protocol. */
export function refusesMisdirected(
  misdirection: Misdirection | undefined,
  listener: Listener,
): Listener {
  if (!misdirection) return listener;
  return (head) => {
    const refused = misdirection(head.headers);
    if (!refused) return listener(head);
    const type = head.headers["content-type"] ?? "";
    if (type.startsWith("application/grpc")) {
      head.answer(200, {
        "content-type": type,
        "grpc-status": permissionDenied,
        "grpc-message": encodeGrpcMessage(refused.message),
      });
      return;
    }
    const error = { code: "permission_denied", message: refused.message };
    const headers = { "content-type": "application/json" };
    head.answer(refused.status, headers, Buffer.from(JSON.stringify(error)));
  };
}

/** gRPC's status code. */
const permissionDenied = "7";

import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { GatewayError } from "../errors.ts";
import type { Outlet, Response } from "../net/request.ts";
import { failedStreamMs } from "../net/unread-answers.ts";

/** Adds what a call is answered with, for those who write to it past Connect, or have to cut it. */
export function withAnswer(values: ContextValues, response: Response): ContextValues {
  return values.set(key, response);
}

/**
 * Cuts the answer of a stream that has failed, unless its client reads on soon and is told in order.
 * Over HTTP/2 the cut says why: to gRPC clients ENHANCE_YOUR_CALM is RESOURCE_EXHAUSTED.
 */
export function cutIfUnread(outlet: Outlet | undefined, error: Error): void {
  if (!outlet || isOver(outlet)) return;
  const timer = setTimeout(() => {
    if (isOver(outlet) || outlet.writableLength === 0) return;
    if (outlet instanceof ServerResponse) outlet.destroy();
    else outlet.close(resetCode(error));
  }, failedStreamMs);
  outlet.once("close", () => clearTimeout(timer));
}

/** What a call is answered with; undefined where nobody said, or once it is over. */
export function outletOf(values: ContextValues): Outlet | undefined {
  const response = values.get(key);
  return response instanceof ServerResponse ? response : response?.stream;
}

export function isOver(outlet: Outlet): boolean {
  const isWritten = outlet instanceof ServerResponse && outlet.writableFinished;
  return isWritten || outlet.destroyed;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

const key = createContextKey<Response | undefined>(undefined, { description: "answer" });

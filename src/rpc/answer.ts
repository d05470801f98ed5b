import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { GatewayError } from "../errors.ts";
import { cutUnlessRead } from "../live/reader.ts";
import type { Outlet, Response } from "../net/request.ts";

/** Adds the call's response, for code that writes to it past Connect or has to cut it. */
export function withAnswer(values: ContextValues, response: Response): ContextValues {
  return values.set(key, response);
}

/**
 * Cuts a failed stream if its client does not read on; one that does receives the error in the
 * regular way. Over HTTP/2 the reset gives the reason: gRPC clients
 * read ENHANCE_YOUR_CALM as RESOURCE_EXHAUSTED.
 */
export function cutIfUnread(outlet: Outlet | undefined, error: Error): void {
  if (!outlet || isOver(outlet)) return;
  const isUnread = () => !isOver(outlet) && outlet.writableLength > 0;
  const stop = cutUnlessRead(isUnread, () => {
    if (outlet instanceof ServerResponse) outlet.destroy();
    else outlet.close(resetCode(error));
  });
  outlet.once("close", stop);
}

/** What a call's response is written to; undefined if `withAnswer` was not called. */
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

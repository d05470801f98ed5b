import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { GatewayError } from "../errors.ts";
import { cutUnlessRead } from "../live/reader.ts";
import type { Outlet } from "../net/request-head.ts";

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

export function isOver(outlet: Outlet): boolean {
  const isWritten = outlet instanceof ServerResponse && outlet.writableFinished;
  return isWritten || outlet.destroyed;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

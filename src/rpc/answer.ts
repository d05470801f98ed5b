import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { GatewayError } from "../errors.ts";
import type { Response } from "../net/request.ts";

/** Adds what a call is answered with, for those who have to cut it. */
export function withAnswer(values: ContextValues, response: Response): ContextValues {
  return values.set(key, response);
}

/** How long a failed stream waits for its client to read the error. */
const unreadTimeoutMs = 5_000;

/**
 * Cuts the answer of a stream that has failed, unless its client reads on soon and is told in order.
 * Over HTTP/2 the cut says why: to gRPC clients ENHANCE_YOUR_CALM is RESOURCE_EXHAUSTED.
 */
export function cutIfUnread(values: ContextValues, error: Error): void {
  const response = values.get(key);
  if (!response || isOver(response)) return;
  const timer = setTimeout(() => {
    if (isOver(response) || response.writableLength === 0) return;
    if (response instanceof ServerResponse) response.destroy();
    else response.stream.close(resetCode(error));
  }, unreadTimeoutMs);
  response.once("close", () => clearTimeout(timer));
}

/** What a call is answered with; undefined where nobody said. */
export function answerOf(values: ContextValues): Response | undefined {
  return values.get(key);
}

export function isOver(response: Response): boolean {
  if (response instanceof ServerResponse) return response.destroyed || response.writableFinished;
  return response.stream?.destroyed ?? true;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

const key = createContextKey<Response | undefined>(undefined, { description: "answer" });

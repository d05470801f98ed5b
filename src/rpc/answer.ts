import { ServerResponse } from "node:http";
import { constants } from "node:http2";
import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";
import { GatewayError } from "../errors.ts";
import { cutUnlessRead } from "../live/reader.ts";
import type { Outlet, Response } from "../net/request-head.ts";

/** What handlers need from the port about a call, beyond what Connect passes on. */
export interface Incoming {
  /** The URL as it was received; parsing it would re-encode characters that are not ASCII. */
  readonly url: string;
  /** Aborts when the connection has reached its maximum age and its streams must end. */
  readonly ending?: AbortSignal | undefined;
  /** Gives back the call's slot among those in flight. */
  readonly leave: () => void;
  /** For code that writes to it past Connect or has to cut it. */
  readonly response: Response;
  /** Sends the headers of a stream's response now, since its first message may come late. */
  readonly sendHeaders: (header: Headers) => void;
}

export function valuesOf(incoming: Incoming): ContextValues {
  return createContextValues().set(key, incoming);
}

/** Undefined for a request that did not arrive through the port. */
export function incomingOf(values: ContextValues): Incoming | undefined {
  return values.get(key);
}

/** What a call's response is written to. */
export function outletOf(values: ContextValues): Outlet | undefined {
  const response = incomingOf(values)?.response;
  return response instanceof ServerResponse ? response : response?.stream;
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

export function isOver(outlet: Outlet): boolean {
  const isWritten = outlet instanceof ServerResponse && outlet.writableFinished;
  return isWritten || outlet.destroyed;
}

function resetCode(error: Error): number {
  const tooSlow = error instanceof GatewayError && error.code === "RESOURCE_EXHAUSTED";
  return tooSlow ? constants.NGHTTP2_ENHANCE_YOUR_CALM : constants.NGHTTP2_CANCEL;
}

const key = createContextKey<Incoming | undefined>(undefined, { description: "incoming" });

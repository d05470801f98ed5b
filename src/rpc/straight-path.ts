import type { IncomingHttpHeaders } from "node:http";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import type { Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import type { RpcObserver } from "./call-record.ts";
import type { Identify } from "./gate.ts";
import type { Log } from "./log.ts";
import type { strictUtf8 } from "./strict-utf8.ts";

/**
 * Serves ordinary calls without Connect's pipelines of iterators and web streams, in the same steps.
 * Whatever is out of the ordinary is Connect's to serve.
 */
export interface StraightPath {
  /** How a request is served here; undefined for one that is Connect's to serve. */
  callOf(handler: UniversalHandler, head: RequestHead): StraightCall | undefined;
  /** Ends the calls under way: UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

/**
 * Serves the call. Resolves once it is answered or its stream has begun, or with the body that was
 * read when only Connect knows how to refuse that: nothing was recorded or answered then.
 */
export type StraightCall = (slot: Slot) => Promise<Uint8Array | undefined>;

export interface StraightPathOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Log;
  readonly observer?: RpcObserver | undefined;
  /** Largest request message, in bytes. */
  readonly readMaxBytes: number;
  /** Longest a body may take to arrive, in milliseconds. */
  readonly requestTimeoutMs: number;
  readonly jsonOptions: {
    readonly ignoreUnknownFields: boolean;
    readonly textDecoder: typeof strictUtf8;
  };
}

/** Whether a request is a plain POST: an address that is none is Connect's to refuse. */
export function isPlainPost({ method, headers }: RequestHead): boolean {
  const authority = headers[":authority"]?.toString() ?? headers.host ?? "";
  return method === "POST" && headers.expect === undefined && plainAuthority.test(authority);
}

/**
 * A body that did not come with its headers.
 * @param maxBytes most bytes of a body that holds a message of `readMaxBytes`
 */
export function receiveBody(
  head: RequestHead,
  maxBytes: number,
  { readMaxBytes, requestTimeoutMs }: StraightPathOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    head.receive({ maxBytes, timeoutMs: requestTimeoutMs }, (body) => {
      if (body === "gone") reject(new GatewayError("CANCELLED", "the caller went away"));
      else if (body === "too-large") reject(tooLarge(readMaxBytes));
      else resolve(body);
    });
  });
}

function tooLarge(readMaxBytes: number): ConnectError {
  const message = `message size is larger than configured readMaxBytes ${readMaxBytes}`;
  return new ConnectError(message, Code.ResourceExhausted);
}

export function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
}

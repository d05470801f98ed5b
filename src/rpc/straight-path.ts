import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Caller } from "../auth/caller.ts";
import type { Call, Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import {
  type CallRecord,
  createCallRecord,
  type RecordedCall,
  type RpcObserver,
} from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import type { Identify } from "./gate.ts";
import type { AnswerHeader } from "./gated-call.ts";
import type { Log } from "./log.ts";
import { implementations } from "./services/routes.ts";
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

/** What a call is of, as records name it. */
export type MethodNames = Pick<UniversalHandler, "service" | "method">;

/** What serves a method: its service's function, and what reads its messages. */
export interface Served<Run> {
  readonly run: Run;
  readonly codec: ReturnType<typeof createMethodSerializationLookup>;
}

/** The methods of a kind, by the path of their requests, as `ready` makes them from what serves them. */
export function methodsByPath<Run, Ready>(
  { core, readMaxBytes, jsonOptions }: StraightPathOptions,
  kind: DescMethod["methodKind"],
  ready: (method: DescMethod, served: Served<Run>) => Ready,
): Map<string, Ready & { readonly names: MethodNames }> {
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  const methods = new Map<string, Ready & { readonly names: MethodNames }>();
  for (const [service, implementation] of implementations(core)) {
    for (const method of service.methods) {
      if (method.methodKind !== kind) continue;
      const run = implementation[method.localName as keyof typeof implementation] as Run;
      const codec = createMethodSerializationLookup(method, undefined, jsonOptions, limits);
      const names = { service, method };
      methods.set(`/${service.typeName}/${method.name}`, {
        ...ready(method, { run, codec }),
        names,
      });
    }
  }
  return methods;
}

/** A call as it begins, for its record. */
export interface Begun extends RecordedCall {
  readonly requestId: string;
  readonly startedMs: number;
}

/** @param caller undefined for a call that was refused before it was known whose it is */
export function beginRecord(
  begun: Begun,
  { log, observer }: StraightPathOptions,
  caller: Caller | undefined,
): CallRecord {
  const options = { log, observer, quiet: false };
  const record = createCallRecord(begun, begun.requestId, options, begun.startedMs);
  if (caller) record.caller = caller.name;
  return record;
}

/**
 * Makes the error of a call fit to be told.
 * @param isIdentified whether its caller is known
 */
export function prepare(
  error: unknown,
  { method }: MethodNames,
  answerHeader: AnswerHeader,
  isIdentified: boolean,
): void {
  const isUnknown = error instanceof GatewayError && error.code === "UNAUTHENTICATED";
  if (isUnknown && !isIdentified) answerHeader.set("www-authenticate", "Bearer");
  if (error instanceof ConnectError) withoutValues(error, method.input);
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

export function idempotencyKeyOf(headers: IncomingHttpHeaders): Pick<Call, "idempotencyKey"> {
  const idempotencyKey = textOf(headers, "idempotency-key");
  return idempotencyKey === null ? {} : { idempotencyKey };
}

export function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
}

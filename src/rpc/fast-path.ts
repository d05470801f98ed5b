import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Caller } from "../auth/caller.ts";
import type { Core } from "../core/core.ts";
import { GatewayError } from "../errors.ts";
import type { Slot } from "../net/admission.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import type { Report } from "../report.ts";
import { type CallRecord, createCallRecord, type RecordedCall } from "./call-record.ts";
import { withoutValues } from "./decode-errors.ts";
import type { Identify } from "./gate.ts";
import type { AnswerHeader } from "./gated-call.ts";
import type { Log } from "./log.ts";
import { checkBinary, type ReceiveOptions } from "./request-body.ts";
import { implementations } from "./services/routes.ts";
import type { strictUtf8 } from "./strict-utf8.ts";

/**
 * Serves ordinary calls in the same steps as Connect, without its pipelines of iterators and web
 * streams. Connect serves all other calls.
 */
export interface FastPath {
  /** Returns the function that serves a request; undefined if Connect must serve it. */
  callOf(handler: UniversalHandler, head: RequestHead): FastCall | undefined;
  /** Aborts the calls in flight with UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

/**
 * Serves the call. Resolves with undefined once it is answered or its stream has begun. Resolves
 * with the request's body if only Connect can refuse it: then nothing was recorded or answered.
 */
export type FastCall = (slot: Slot) => Promise<Uint8Array | undefined>;

export interface FastPathOptions extends ReceiveOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Log;
  readonly report: Report;
  readonly binaryOptions: { readonly readUnknownFields: boolean };
  readonly jsonOptions: {
    readonly ignoreUnknownFields: boolean;
    readonly textDecoder: typeof strictUtf8;
  };
}

/** The service and method of a call, for its record. */
export type MethodNames = Pick<UniversalHandler, "service" | "method">;

/** The function that implements a method, and the codec of its messages. */
export interface Served<Run> {
  readonly run: Run;
  /** Decodes a request. @throws ConnectError for one that is malformed or beyond the limits */
  readonly decode: (message: Uint8Array, isBinary: boolean) => Message;
}

/** All methods of a kind by request path. `ready` prepares each from its function and codec. */
export function methodsByPath<Run, Ready>(
  { core, readMaxBytes, binaryOptions, jsonOptions }: FastPathOptions,
  kind: DescMethod["methodKind"],
  ready: (method: DescMethod, served: Served<Run>) => Ready,
): Map<string, Ready & { readonly names: MethodNames }> {
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  const methods = new Map<string, Ready & { readonly names: MethodNames }>();
  for (const [service, implementation] of implementations(core)) {
    for (const method of service.methods) {
      if (method.methodKind !== kind) continue;
      const run = implementation[method.localName as keyof typeof implementation] as Run;
      const codec = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
      const decode = (message: Uint8Array, isBinary: boolean) => {
        if (isBinary) checkBinary(method.input, message);
        return codec.getI(isBinary).parse(message);
      };
      const names = { service, method };
      methods.set(`/${service.typeName}/${method.name}`, {
        ...ready(method, { run, decode }),
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

/** @param caller undefined for a call that was refused before its caller was identified */
export function beginRecord(
  begun: Begun,
  { log, report }: FastPathOptions,
  caller: Caller | undefined,
): CallRecord {
  const options = { log, report, quiet: false };
  const record = createCallRecord(begun, begun.requestId, options, begun.startedMs);
  if (caller) record.caller = caller;
  return record;
}

/**
 * Prepares a call's error for its caller: removes quoted values, and sets `www-authenticate` if it
 * is an UNAUTHENTICATED error of a caller that was not identified.
 * @param isIdentified whether the caller was identified
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

/**
 * Whether a request is a POST with a plain authority and no `Expect`; Connect serves all others.
 */
export function isPlainPost({ method, headers }: RequestHead): boolean {
  const authority = headers[":authority"]?.toString() ?? headers.host ?? "";
  return method === "POST" && headers.expect === undefined && plainAuthority.test(authority);
}

export function textOf(headers: IncomingHttpHeaders, name: string): string | null {
  const value = headers[name];
  return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
}

import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { ConnectError, type ContextValues, createContextValues } from "@connectrpc/connect";
import {
  createMethodSerializationLookup,
  type UniversalHandler,
} from "@connectrpc/connect/protocol";
import type { Caller } from "../auth/caller.ts";
import type { UnderWay } from "../collections/under-way.ts";
import type { Call, Core } from "../core/core.ts";
import type { Slot } from "../net/admission.ts";
import { plainAuthority, type RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import type { Report } from "../report.ts";
import { CallLife } from "./call-life.ts";
import { type CallRecord, createCallRecord, type Log, type RecordedCall } from "./call-record.ts";
import { codecOptions } from "./codec-options.ts";
import { withoutValues } from "./decode-errors.ts";
import { toConnectError } from "./errors.ts";
import type { Identify } from "./gate.ts";
import { type AnswerHeader, challenge, idempotencyOf, setGatedCall } from "./gated-call.ts";
import { checkBinary, type ReceiveOptions } from "./request-body.ts";
import { implementations } from "./services/routes.ts";

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
}

/** A method, the function that implements it, and the codec of its requests. */
export interface ServedMethod<Run> extends Pick<UniversalHandler, "service" | "method"> {
  readonly run: Run;
  /** Decodes a request. @throws ConnectError for one that is malformed or beyond the limits */
  readonly decode: (message: Uint8Array, isBinary: boolean) => Message;
}

/** All methods of a kind by request path. */
export function methodsByPath<Run>(
  { core, readMaxBytes }: FastPathOptions,
  kind: DescMethod["methodKind"],
): Map<string, ServedMethod<Run>> {
  const { binaryOptions, jsonOptions } = codecOptions;
  const limits = { readMaxBytes, writeMaxBytes: 0xffff_ffff };
  const methods = new Map<string, ServedMethod<Run>>();
  for (const [service, implementation] of implementations(core)) {
    for (const method of service.methods) {
      if (method.methodKind !== kind) continue;
      const run = implementation[method.localName as keyof typeof implementation] as Run;
      const codec = createMethodSerializationLookup(method, binaryOptions, jsonOptions, limits);
      const decode = (message: Uint8Array, isBinary: boolean) => {
        if (isBinary) checkBinary(method.input, message);
        return codec.getI(isBinary).parse(message);
      };
      methods.set(`/${service.typeName}/${method.name}`, { service, method, run, decode });
    }
  }
  return methods;
}

/** The protocol of a request, and how long its caller waits, in milliseconds, if it says so. */
interface Asked {
  readonly name: string;
  readonly timeoutMs: number | undefined;
}

/**
 * One call on a fast path, from its headers to its outcome: the steps of both paths besides those
 * of their answers. By its headers the caller is identified.
 */
export class ServedCall implements RecordedCall {
  readonly service: DescService;
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestId: string;
  /** Undefined until the caller is identified. */
  call: Call | undefined;
  readonly #options: FastPathOptions;
  readonly #answerHeader: AnswerHeader;
  readonly #startedMs = performance.now();
  readonly #deadlineMs: number | undefined;
  readonly #life: CallLife;
  #headers: IncomingHttpHeaders | undefined;
  #record: CallRecord | undefined;

  constructor(
    head: RequestHead,
    { service, method }: Pick<UniversalHandler, "service" | "method">,
    { name, timeoutMs }: Asked,
    underWay: UnderWay<AbortController>,
    answerHeader: AnswerHeader,
    options: FastPathOptions,
  ) {
    this.service = service;
    this.method = method;
    this.protocolName = name;
    this.#headers = head.headers;
    this.#options = options;
    this.#answerHeader = answerHeader;
    this.#deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.#life = new CallLife(head, timeoutMs, underWay);
    if (method.methodKind !== "unary") this.#life.endWith(head.ending);
    this.requestId = requestIdOf(this.get(requestIdHeader));
    answerHeader.set("cache-control", "no-store");
    answerHeader.set(requestIdHeader, this.requestId);
  }

  get signal(): AbortSignal {
    return this.#life.signal;
  }

  /** A header of the request; null if it has none of this name. */
  get(name: string): string | null {
    const value = this.#headers?.[name];
    return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
  }

  /** @param hooks the callbacks by which the core acts on the call's answer */
  identified(caller: Caller, hooks: Partial<Call>): Call {
    this.call = {
      ...hooks,
      ...{ caller, signal: this.signal, requestId: this.requestId, transport: this.protocolName },
      onAbout: (externalId) => {
        if (this.#record) this.#record.externalId = externalId;
      },
      ...(this.#deadlineMs === undefined ? {} : { deadlineMs: this.#deadlineMs }),
      ...idempotencyOf(this.get("idempotency-key"), this.#answerHeader),
    };
    return this.call;
  }

  /** Leaves the call to Connect: nothing was recorded. */
  leave(): void {
    this.#life.end();
  }

  /** Begins the record of an identified call that has its message. Returns what its handler reads. */
  begin(call: Call, beat?: () => void): ContextValues {
    const record = this.#recorded();
    const values = createContextValues();
    setGatedCall(values, { record, answerHeader: this.#answerHeader, call, beat });
    return values;
  }

  /** Forgets the request: a stream lasts long. */
  releaseRequest(): void {
    this.#headers = undefined;
  }

  /** The error as its caller receives it. */
  failed(error: unknown): ConnectError {
    if (!this.call) challenge(error, this.#answerHeader);
    if (error instanceof ConnectError) withoutValues(error, this.method.input);
    return toConnectError(error, this.signal, this.#recorded().unknown);
  }

  end(failure: ConnectError | undefined): void {
    this.#life.end();
    this.#recorded().settle(failure);
  }

  #recorded(): CallRecord {
    if (!this.#record) {
      const { log, report } = this.#options;
      const options = { log, report, quiet: false };
      this.#record = createCallRecord(this, this.requestId, options, this.#startedMs);
      if (this.call) this.#record.caller = this.call.caller;
    }
    return this.#record;
  }
}

/**
 * Whether a request is a POST with a plain authority and no `Expect`; Connect serves all others.
 */
export function isPlainPost({ method, headers }: RequestHead): boolean {
  const authority = headers[":authority"]?.toString() ?? headers.host ?? "";
  return method === "POST" && headers.expect === undefined && plainAuthority.test(authority);
}

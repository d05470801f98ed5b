import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../auth/caller.ts";
import type { Identify } from "../auth/identify.ts";
import type { Member, UnderWay } from "../collections/under-way.ts";
import type { Core } from "../core/core.ts";
import { replayedHeader } from "../core/idempotency.ts";
import { type ErrorCode, errorOfAbort, GatewayError, reasonOf } from "../errors.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import type { Admission, Slot } from "../net/admission.ts";
import type { Intake } from "../net/intake.ts";
import type { Misdirection, RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import type { Logger, Report } from "../report.ts";
import { isServerFailure, rpcStatusOf } from "../telemetry/tracing/attributes.ts";
import { activeSpan, type Span, type Tracing } from "../telemetry/tracing/tracing.ts";
import { compressionNotNamed, statusCodes, toGatewayError } from "./errors.ts";
import type { RpcLimits, ServedMethod, ServiceCall } from "./methods.ts";
import type { Asked, Protocol } from "./protocols.ts";

/** What the paths of all calls share. */
export interface ServingOptions {
  readonly core: Core;
  readonly identify: Identify;
  readonly log: Logger;
  readonly report: Report;
  readonly tracing: Tracing;
  /** Which requests are refused by their headers alone. Default: none. */
  readonly misdirection?: Misdirection | undefined;
  /** Decides which calls are admitted. */
  readonly admission: Admission;
  /** Takes in the bodies of calls. */
  readonly intake: Intake;
  readonly limits: RpcLimits;
  /** The calls in flight. */
  readonly underWay: UnderWay<AbortController>;
}

/** Headers of the answer, also of an error; to be set before its first byte is written. */
export type AnswerHeaders = Record<string, string>;

/** A call whose headers were read. */
export interface ArrivedCall {
  readonly method: ServedMethod;
  readonly head: RequestHead;
  readonly asked: Asked;
  /** Given back already if the call is a stream. */
  readonly slot: Slot;
  readonly options: ServingOptions;
}

/**
 * One call, from its headers to its outcome: the steps of unary calls and streams besides those of
 * their answers. By its headers the caller is identified.
 */
export class ServedCall {
  readonly #method: ServedMethod;
  readonly #protocol: Protocol["name"];
  readonly #requestId: string;
  readonly #startedMs = performance.now();
  readonly #span = activeSpan.getStore();
  /** Undefined until the caller is identified. */
  #call: ServiceCall | undefined;
  /** What the call is about, once the core has said so. */
  #externalId: string | undefined;
  readonly #options: ServingOptions;
  #answerHeaders: AnswerHeaders;
  readonly #deadlineMs: number | undefined;
  readonly #controller = new AbortController();
  readonly #member: Member<AbortController>;
  #timer: NodeJS.Timeout | undefined;
  /** Aborts when the connection of a stream must end. */
  readonly #ending: AbortSignal | undefined;
  readonly #onEnding = () => this.#controller.abort(this.#ending?.reason);
  #headers: IncomingHttpHeaders | undefined;

  constructor({ head, method, asked, options }: ArrivedCall, answerHeaders: AnswerHeaders) {
    const { timeoutMs, protocol } = asked;
    this.#method = method;
    this.#protocol = protocol.name;
    this.#options = options;
    this.#headers = head.headers;
    this.#answerHeaders = answerHeaders;
    this.#deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.#member = options.underWay.add(this.#controller);
    const { methodKind, parent, name } = method.method;
    this.#ending = methodKind === "unary" ? undefined : head.ending;
    this.#limit(head, method.lastsMs, timeoutMs);
    this.#requestId = requestIdOf(this.header(requestIdHeader));
    options.report("rpcBegan", { service: parent.typeName, method: name });
    answerHeaders["cache-control"] = "no-store";
    answerHeaders[requestIdHeader] = this.#requestId;
  }

  /**
   * Aborts at the call's deadline, when it has lasted as long as calls of its method may, when the
   * caller leaves or when the gateway shuts down, and for a stream also when its connection must end.
   * It does not abort after `end`, when the call has ended by itself.
   */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  #limit(head: RequestHead, lastsMs: number, timeoutMs = Number.POSITIVE_INFINITY): void {
    const end = () => this.#controller.abort(timeoutMs <= lastsMs ? deadlinePassed() : tooLong());
    const ms = Math.min(timeoutMs, lastsMs);
    if (ms === 0) end();
    else if (ms < Number.POSITIVE_INFINITY) this.#timer = setTimeout(end, ms);
    head.onClose(() => {
      if (!this.#member.hasLeft) leaveInTurn(() => this.#leave());
    });
    if (this.#ending?.aborted) this.#onEnding();
    else this.#ending?.addEventListener("abort", this.#onEnding);
  }

  #leave(): void {
    if (this.#member.hasLeft) return;
    this.#controller.abort(new GatewayError("CANCELLED", "the caller went away"));
  }

  /** A header of the request; null if it has none of this name. */
  header(name: string): string | null {
    const value = this.#headers?.[name];
    return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
  }

  identified(caller: Caller, hooks: Partial<ServiceCall>): ServiceCall {
    const idempotencyKey = this.header("idempotency-key");
    this.#call = {
      ...hooks,
      ...{ caller, signal: this.signal, requestId: this.#requestId, transport: this.#protocol },
      onAbout: (externalId) => {
        this.#externalId = externalId;
      },
      ...(this.#deadlineMs === undefined ? {} : { deadlineMs: this.#deadlineMs }),
      ...(idempotencyKey !== null && { idempotencyKey }),
      onReplayed: () => {
        this.#answerHeaders[replayedHeader] = "true";
      },
    };
    return this.#call;
  }

  /**
   * Sets headers with the current rate budget of the caller's account. Sets none if there is no
   * caller or the budget cannot be read, so that a finished response is never lost because of them.
   */
  setRateLimit(): void {
    if (!this.#call) return;
    try {
      const isMoney = moneyKindOf(this.#method.method) !== undefined;
      const budget = this.#options.core.rateLimit(this.#call);
      Object.assign(this.#answerHeaders, rateLimitHeaders(budget, isMoney));
    } catch {
      // The answer goes out without them.
    }
  }

  /** Forgets the request: a stream lasts long. */
  releaseRequest(): void {
    this.#headers = undefined;
    this.#answerHeaders = {};
  }

  /** The error as its caller receives it. */
  failed(error: unknown): GatewayError {
    if (!this.#call && error instanceof GatewayError && error.code === "UNAUTHENTICATED") {
      this.#answerHeaders["www-authenticate"] = "Bearer";
    }
    return toGatewayError(error, this.signal, (unknown) => {
      const about = {
        requestId: this.#requestId,
        method: this.#method.requestPath.slice(1),
        err: unknown,
      };
      this.#options.log.error(about, "unexpected error");
    });
  }

  /** Writes the record of the call, its metrics and the outcome of its span. */
  end(error: GatewayError | undefined): void {
    this.#member.leave();
    clearTimeout(this.#timer);
    this.#ending?.removeEventListener("abort", this.#onEnding);
    const { log, report } = this.#options;
    const protocol = this.#protocol;
    const span = this.#span;
    const { method, isOpen, requestPath } = this.#method;
    const { name, parent, methodKind } = method;
    const unary = methodKind === "unary";
    // A unary call may succeed after its caller has left; a stream that does is not complete.
    const isWhole = unary || !this.signal.aborted;
    const code = error ? error.code : isWhole ? "OK" : errorOfAbort(this.signal).code;
    const durationMs = performance.now() - this.#startedMs;
    const reason = error && (reasonOf(error)?.reason ?? error.code);
    const isCallersMistake = reason === compressionNotNamed;
    report("rpcEnded", {
      ...{ service: parent.typeName, method: name, protocol, code, durationMs, isCallersMistake },
      ...{ unary, traceparent: span?.traceparent },
    });
    if (span) endSpan(span, protocol, code, isCallersMistake);
    const entry = {
      method: requestPath.slice(1),
      code,
      ...(reason !== undefined && { reason }),
      durationMs: Math.round(durationMs * 1000) / 1000,
      requestId: this.#requestId,
      caller: this.#call?.caller.name,
      account: this.#call?.caller.account,
      externalId: this.#externalId,
      protocol,
    };
    if (code === "INTERNAL" && !isCallersMistake) log.error(entry, "rpc");
    else if (isOpen) log.debug(entry, "rpc");
    else log.info(entry, "rpc");
  }
}

function deadlinePassed(): DOMException {
  return new DOMException("the deadline passed", "TimeoutError");
}

function tooLong(): GatewayError {
  return new GatewayError("UNAVAILABLE", "the stream has lasted long enough: open another", {
    reason: "STREAM_OVER",
  });
}

function endSpan(
  span: Span,
  protocol: string,
  code: ErrorCode | "OK",
  isCallersMistake: boolean,
): void {
  const status = rpcStatusOf(protocol, code);
  span.set({
    "rpc.status_code": status,
    "rpc.response.status_code": status,
    ...(protocol === "connect"
      ? { "rpc.connect_rpc.error_code": status }
      : { "rpc.grpc.status_code": code === "OK" ? 0 : statusCodes[code] }),
  });
  if (isServerFailure(code) && !isCallersMistake) span.fail(code);
}

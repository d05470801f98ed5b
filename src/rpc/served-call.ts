import type { IncomingHttpHeaders } from "node:http";
import type { Caller } from "../auth/caller.ts";
import type { Member } from "../collections/under-way.ts";
import { requireScope } from "../core/authorize.ts";
import { replayedHeader } from "../core/idempotency.ts";
import { deadlinePassed, type ErrorCode, errorOfAbort, GatewayError, reasonOf } from "../errors.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import { isUtf8Address } from "../net/address-text.ts";
import type { RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import { isServerFailure, rpcStatusOf } from "../telemetry/tracing/attributes.ts";
import { activeSpan, type Span } from "../telemetry/tracing/tracing.ts";
import { invalid } from "./decode-errors.ts";
import { compressionNotNamed, statusCodes, toGatewayError } from "./errors.ts";
import type {
  AnonymousCall,
  ArrivedCall,
  ServedMethod,
  ServiceCall,
  ServingOptions,
} from "./methods.ts";
import type { Protocol } from "./protocols.ts";
import { requestOf } from "./request-body.ts";

/** Headers of the answer, also of an error; to be set before its first byte is written. */
export type AnswerHeaders = Record<string, string>;

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
  answerHeaders: AnswerHeaders = { "cache-control": "no-store" };
  readonly #deadlineMs: number | undefined;
  readonly #controller = new AbortController();
  readonly #member: Member<AbortController>;
  #timer: NodeJS.Timeout | undefined;
  /** Aborts when the connection of a stream must end. */
  readonly #ending: AbortSignal | undefined;
  readonly #onEnding = () => this.#controller.abort(this.#ending?.reason);
  #headers: IncomingHttpHeaders | undefined;

  constructor({ head, method, asked, options }: ArrivedCall) {
    const { timeoutMs, protocol } = asked;
    this.#method = method;
    this.#protocol = protocol.name;
    this.#options = options;
    this.#headers = head.headers;
    this.#deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.#member = options.underWay.add(this.#controller);
    this.#ending = method.isUnary ? undefined : head.ending;
    this.#limit(head, method.lastsMs, timeoutMs);
    this.#requestId = requestIdOf(this.header(requestIdHeader));
    this.answerHeaders[requestIdHeader] = this.#requestId;
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

  /**
   * Takes the steps from a call's headers to its result: identify, receive, decode, run the use case.
   * @param hooks the callbacks by which the core and the services act on the call's answer
   * @throws the error of any step
   */
  async result(arrived: ArrivedCall, hooks: Partial<ServiceCall>): Promise<unknown> {
    const { method, head, asked, options } = arrived;
    let call: ServiceCall | AnonymousCall = this;
    if (!method.isOpen) {
      const caller = await options.identify({ header: (name) => this.header(name) });
      call = this.#identified(caller, hooks);
      // The headers of a stream leave before its result is there.
      if (!method.isUnary) this.setRateLimit();
      requireScope(caller, method.method);
      if (head.url !== method.requestPath && !isUtf8Address(head.url)) {
        throw invalid("the address must be percent-encoded UTF-8");
      }
    }
    if (asked.error) throw asked.error;
    const request = requestOf(arrived, this.signal);
    return method.run(request instanceof Promise ? await request : request, call);
  }

  #identified(caller: Caller, hooks: Partial<ServiceCall>): ServiceCall {
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
        this.answerHeaders[replayedHeader] = "true";
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
      Object.assign(this.answerHeaders, rateLimitHeaders(budget, isMoney));
    } catch {
      // The answer goes out without them.
    }
  }

  /** Forgets the request: a stream lasts long. */
  releaseRequest(): void {
    this.#headers = undefined;
    this.answerHeaders = {};
  }

  /** The error as its caller receives it. */
  failed(error: unknown): GatewayError {
    if (!this.#call && error instanceof GatewayError && error.code === "UNAUTHENTICATED") {
      this.answerHeaders["www-authenticate"] = "Bearer";
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
    const { method, isOpen, isUnary: unary, requestPath } = this.#method;
    const { name, parent } = method;
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

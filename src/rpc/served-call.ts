import type { IncomingHttpHeaders } from "node:http";
import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Caller } from "../auth/caller.ts";
import type { Member, UnderWay } from "../collections/under-way.ts";
import type { Call, Core } from "../core/core.ts";
import { replayedHeader } from "../core/idempotency.ts";
import { GatewayError } from "../errors.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import type { Admission, CallKind, Slot } from "../net/admission.ts";
import type { Intake } from "../net/intake.ts";
import type { Misdirection, RequestHead } from "../net/request-head.ts";
import { requestIdHeader, requestIdOf } from "../net/request-id.ts";
import { leaveInTurn } from "../net/spread-over-turns.ts";
import { rateLimitHeaders } from "../ratelimit/headers.ts";
import type { Logger, Report } from "../report.ts";
import { activeSpan, type Tracing } from "../telemetry/tracing/tracing.ts";
import { type RecordedCall, recordCall } from "./call-record.ts";
import { toGatewayError } from "./errors.ts";
import type { RpcLimits } from "./limits.ts";
import type { Asked, Granted } from "./protocols.ts";

/** Identifies the caller by a request's headers. @throws GatewayError for a caller it refuses */
export type Identify = (headers: Pick<Headers, "get">) => Promise<Caller>;

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

/** A method, and the function that implements it. */
export interface ServedMethod extends Granted {
  readonly method: DescMethod;
  readonly requestPath: string;
  readonly allowedMethods: readonly string[];
  /**
   * Whether it needs no credentials, as those of health and reflection. Nothing is compressed for
   * it, and its calls are recorded at debug level only.
   */
  readonly isOpen: boolean;
  /** Longest that its calls last, whatever their time-outs, in milliseconds. */
  readonly lastsMs: number;
  /** How its calls are admitted. */
  readonly kind: CallKind;
  /** Largest request message, in bytes, before and after decompression. */
  readonly readMaxBytes: number;
  /** Takes a stream of requests instead if the method does (`isBidi`). */
  readonly run: (
    request: Message | AsyncIterable<Message>,
    call: ServiceCall | OpenCall,
  ) => unknown;
}

/** Whether a method takes a stream of requests. */
export function isBidi({ method }: Pick<ServedMethod, "method">): boolean {
  return method.methodKind === "bidi_streaming";
}

/** The call of an identified caller, as the services get it. */
export interface ServiceCall extends Call {
  /** Of a stream: writes a message without an event, unless the answer's buffer is full. */
  readonly beat?: () => void;
}

/** A call of a method that needs no credentials. */
export type OpenCall = Pick<ServedCall, "signal">;

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
export class ServedCall implements RecordedCall {
  readonly method: DescMethod;
  readonly protocolName: string;
  readonly requestId: string;
  readonly startedMs = performance.now();
  readonly span = activeSpan.getStore();
  /** Undefined until the caller is identified. */
  call: ServiceCall | undefined;
  /** What the call is about, once the core has said so. */
  externalId: string | undefined;
  readonly #options: ServingOptions;
  #answerHeaders: AnswerHeaders;
  readonly #deadlineMs: number | undefined;
  readonly #life: CallLife;
  readonly #isOpen: boolean;
  #headers: IncomingHttpHeaders | undefined;

  constructor(
    { head, method: { method, isOpen, lastsMs }, asked, options }: ArrivedCall,
    answerHeaders: AnswerHeaders,
  ) {
    const { timeoutMs, protocol } = asked;
    this.method = method;
    this.protocolName = protocol.name;
    this.#options = options;
    this.#isOpen = isOpen;
    this.#headers = head.headers;
    this.#answerHeaders = answerHeaders;
    this.#deadlineMs = timeoutMs === undefined ? undefined : Date.now() + timeoutMs;
    this.#life = new CallLife(head, timeoutMs, lastsMs, options.underWay);
    if (method.methodKind !== "unary") this.#life.endWith(head.ending);
    this.requestId = requestIdOf(this.get(requestIdHeader));
    options.report("rpcBegan", { service: method.parent.typeName, method: method.name });
    answerHeaders["cache-control"] = "no-store";
    answerHeaders[requestIdHeader] = this.requestId;
  }

  get signal(): AbortSignal {
    return this.#life.signal;
  }

  /** A header of the request; null if it has none of this name. */
  get(name: string): string | null {
    const value = this.#headers?.[name];
    return value === undefined ? null : Array.isArray(value) ? value.join(", ") : value;
  }

  identified(caller: Caller, hooks: Partial<ServiceCall>): ServiceCall {
    const idempotencyKey = this.get("idempotency-key");
    this.call = {
      ...hooks,
      ...{ caller, signal: this.signal, requestId: this.requestId, transport: this.protocolName },
      onAbout: (externalId) => {
        this.externalId = externalId;
      },
      ...(this.#deadlineMs === undefined ? {} : { deadlineMs: this.#deadlineMs }),
      ...(idempotencyKey !== null && { idempotencyKey }),
      onReplayed: () => {
        this.#answerHeaders[replayedHeader] = "true";
      },
    };
    return this.call;
  }

  /**
   * Sets headers with the current rate budget of the caller's account. Sets none if there is no
   * caller or the budget cannot be read, so that a finished response is never lost because of them.
   */
  setRateLimit(): void {
    if (!this.call) return;
    try {
      const isMoney = moneyKindOf(this.method) !== undefined;
      const budget = this.#options.core.rateLimit(this.call);
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
    if (!this.call && error instanceof GatewayError && error.code === "UNAUTHENTICATED") {
      this.#answerHeaders["www-authenticate"] = "Bearer";
    }
    return toGatewayError(error, this.signal, (unknown) => {
      const { requestId, method } = this;
      const about = { requestId, method: `${method.parent.typeName}/${method.name}`, err: unknown };
      this.#options.log.error(about, "unexpected error");
    });
  }

  end(failure: GatewayError | undefined): void {
    this.#life.end();
    recordCall(this, failure, this.#options, this.#isOpen);
  }
}

/**
 * The lifetime of a call. Its signal aborts at the call's deadline, when it has lasted as long as
 * calls of its method may, when the caller leaves or when the gateway shuts down, and for a stream also when its connection must end (`endWith`). It does
 * not abort after `end`, when the call has ended by itself.
 */
class CallLife {
  readonly #controller = new AbortController();
  readonly #member: Member<AbortController>;
  #timer: NodeJS.Timeout | undefined;
  #ending: AbortSignal | undefined;
  #onEnding: (() => void) | undefined;

  constructor(
    head: RequestHead,
    timeoutMs = Number.POSITIVE_INFINITY,
    lastsMs: number,
    underWay: UnderWay<AbortController>,
  ) {
    this.#member = underWay.add(this.#controller);
    const end = () => this.#controller.abort(timeoutMs <= lastsMs ? deadlinePassed() : tooLong());
    const ms = Math.min(timeoutMs, lastsMs);
    if (ms === 0) end();
    else if (ms < Number.POSITIVE_INFINITY) this.#timer = setTimeout(end, ms);
    head.onClose(() => {
      if (!this.#member.hasLeft) leaveInTurn(() => this.#leave());
    });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Also aborts when `ending` does, with the same reason. */
  endWith(ending: AbortSignal | undefined): void {
    if (!ending) return;
    this.#ending = ending;
    this.#onEnding = () => this.#controller.abort(ending.reason);
    if (ending.aborted) this.#onEnding();
    else ending.addEventListener("abort", this.#onEnding);
  }

  end(): void {
    this.#member.leave();
    clearTimeout(this.#timer);
    if (this.#onEnding) this.#ending?.removeEventListener("abort", this.#onEnding);
  }

  #leave(): void {
    if (this.#member.hasLeft) return;
    this.#controller.abort(new GatewayError("CANCELLED", "the caller went away"));
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

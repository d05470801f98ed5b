import type { DescMethod, DescService, Message } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import type { Identify } from "../auth/identify.ts";
import type { UnderWay } from "../collections/under-way.ts";
import type { Call, Core } from "../core/core.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import type { Admission, CallKind, Slot } from "../net/admission.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "../net/connection-limits.ts";
import type { Intake } from "../net/intake.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import type { Misdirection, RequestHead } from "../net/request-head.ts";
import { maxTimerMs } from "../net/timer.ts";
import type { Logger, Report } from "../report.ts";
import type { Tracing } from "../telemetry/tracing/tracing.ts";
import { type Asked, compressions, type Granted } from "./protocols.ts";

/** Limits of the rpc listener, its connections and calls. */
export type RpcLimits = Readonly<typeof defaultLimits> & ConnectionLimits;

export const defaultLimits = {
  ...defaultConnectionLimits,
  /** Largest request message, in bytes, before and after decompression. */
  readMaxBytes: intakeLimits.messageBytes,
  /**
   * Longest that a stream lasts that needs no credentials, in milliseconds. A client opens the next
   * watch of health at once, and may count the server as unhealthy until then.
   */
  openStreamMs: 3_600_000,
};

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
    call: ServiceCall | AnonymousCall,
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
export type AnonymousCall = Pick<Call, "signal">;

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
 * The methods of a service.
 * @param implementation the functions that implement them
 * @param isOpen whether they need no credentials
 */
export function methodsOf(
  service: DescService,
  implementation: object,
  isOpen: boolean,
  { maxUnaryTimeoutMs, readMaxBytes: ofContract, openStreamMs }: RpcLimits,
): readonly ServedMethod[] {
  const readMaxBytes = isOpen ? intakeLimits.openMessageBytes : ofContract;
  return service.methods.map((method) => {
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const isUnary = method.methodKind === "unary";
    return {
      ...{ method, isUnary },
      requestPath: `/${service.typeName}/${method.name}`,
      allowedMethods: isRead ? ["POST", "GET"] : ["POST"],
      isOpen,
      kind: kindOf(method),
      readMaxBytes,
      maxTimeoutMs: isUnary ? maxUnaryTimeoutMs : maxTimerMs,
      lastsMs: isOpen && !isUnary ? openStreamMs : Number.POSITIVE_INFINITY,
      compressions: isOpen ? [] : compressions,
      run: implementation[method.localName as keyof typeof implementation] as ServedMethod["run"],
    };
  });
}

/** Health calls are never refused because of overload. */
function kindOf(method: DescMethod): CallKind {
  if (method.parent.typeName === Health.typeName) return "exempt";
  if (method.methodKind !== "unary") return "watch";
  return moneyKindOf(method) ? "money" : "other";
}

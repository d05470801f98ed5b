import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { UnderWay } from "../collections/under-way.ts";
import { GatewayError } from "../errors.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import type { CallKind, Slot } from "../net/admission.ts";
import { type ConnectionLimits, defaultConnectionLimits } from "../net/connection-limits.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { emptyResponse, isAuthority, type RequestHead } from "../net/request-head.ts";
import { maxTimerMs } from "../net/timer.ts";
import { compressions, streamRequestOf, unaryRequestOf } from "./protocols.ts";
import { isBidi, type ServedMethod, type ServingOptions } from "./served-call.ts";
import { serveStream } from "./stream-path.ts";
import { serveUnary } from "./unary-path.ts";

/** Serves methods in every protocol, encoding and version of HTTP. */
export interface Methods {
  /** All of them. */
  readonly all: readonly ServedMethod[];
  /** Serves a call. Resolves once it is answered or its stream has begun. */
  serve(method: ServedMethod, head: RequestHead, slot: Slot): Promise<void>;
  /** Aborts the calls in flight with UNAVAILABLE, since the gateway shuts down. */
  cut(): void;
}

/** A service, and the functions that implement its methods. */
export type Implemented = readonly [DescService, object];

/**
 * @param services those that require an identified caller
 * @param openServices those that need no credentials
 */
export function createMethods(
  services: readonly Implemented[],
  openServices: readonly Implemented[],
  limits: RpcLimits,
  given: Omit<ServingOptions, "underWay">,
): Methods {
  const options = { ...given, underWay: new UnderWay<AbortController>() };
  return {
    all: [
      ...services.flatMap((service) => methodsOf(service, false, limits)),
      ...openServices.flatMap((service) => methodsOf(service, true, limits)),
    ],
    async serve(method, head, slot) {
      const isUnary = method.method.methodKind === "unary";
      // A stream gives its slot back when it begins.
      if (!isUnary) slot.leave();
      if (!namesHost(head)) return refuse(400);
      // A client that expects to read while it writes would hang on this connection.
      if (isBidi(method) && head.httpVersion === "1.1") return refuse(505, { connection: "close" });
      if (!method.allowedMethods.includes(head.method)) {
        return refuse(405, { allow: method.allowedMethods.join(", ") });
      }
      if (isUnary) {
        const asked = unaryRequestOf(head, method);
        return asked ? serveUnary({ method, head, asked, slot, options }) : refuse(415);
      }
      const asked = streamRequestOf(head, method);
      return asked ? serveStream({ method, head, asked, slot, options }) : refuse(415);

      function refuse(status: number, headers: Readonly<Record<string, string>> = {}): void {
        slot.leave();
        head.answer(emptyResponse(status, { "cache-control": "no-store", ...headers }));
      }
    },
    cut() {
      const shuttingDown = new GatewayError("UNAVAILABLE", "the gateway is shutting down");
      for (const controller of options.underWay) controller.abort(shuttingDown);
    },
  };
}

function methodsOf(
  [service, implementation]: Implemented,
  isOpen: boolean,
  { maxUnaryTimeoutMs, readMaxBytes: ofContract }: RpcLimits,
): readonly ServedMethod[] {
  const readMaxBytes = isOpen ? intakeLimits.openMessageBytes : ofContract;
  return service.methods.map((method) => {
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    return {
      method,
      requestPath: `/${service.typeName}/${method.name}`,
      allowedMethods: isRead ? ["POST", "GET"] : ["POST"],
      isOpen,
      kind: kindOf(method),
      readMaxBytes,
      maxTimeoutMs: method.methodKind === "unary" ? maxUnaryTimeoutMs : maxTimerMs,
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

/** Whether a request names its host as a URL can. */
function namesHost({ headers }: RequestHead): boolean {
  return isAuthority(headers[":authority"]?.toString() ?? headers.host ?? "");
}

export type RpcLimits = Readonly<typeof defaultLimits> & ConnectionLimits;

export const defaultLimits = {
  ...defaultConnectionLimits,
  /** Largest request message, in bytes, before and after decompression. */
  readMaxBytes: 1024 * 1024,
  /**
   * Longest that a watch of health lasts, in milliseconds. A client opens the next one at once, and
   * may count the server as unhealthy until then.
   */
  healthWatchMs: 3_600_000,
  /** Longest that a stream of reflection lasts, in milliseconds. */
  reflectionMs: 300_000,
};

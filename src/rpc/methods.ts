import type { DescMethod, DescService } from "@bufbuild/protobuf";
import { MethodOptions_IdempotencyLevel } from "@bufbuild/protobuf/wkt";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { moneyKindOf } from "../model/money-methods.ts";
import type { CallKind } from "../net/admission.ts";
import { intakeLimits } from "../net/intake-limits.ts";
import { maxTimerMs } from "../net/timer.ts";
import type { RpcLimits } from "./limits.ts";
import { compressions } from "./protocols.ts";
import type { ServedMethod } from "./served-call.ts";

/** A service, and the functions that implement its methods. */
export type Implemented = readonly [DescService, object];

/**
 * The methods of a service.
 * @param isOpen whether they need no credentials
 */
export function methodsOf(
  [service, implementation]: Implemented,
  isOpen: boolean,
  { maxUnaryTimeoutMs, readMaxBytes: ofContract, openStreamMs }: RpcLimits,
): readonly ServedMethod[] {
  const readMaxBytes = isOpen ? intakeLimits.openMessageBytes : ofContract;
  return service.methods.map((method) => {
    const isRead = method.idempotency === MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
    const isUnary = method.methodKind === "unary";
    return {
      method,
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

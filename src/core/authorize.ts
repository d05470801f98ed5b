import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { GatewayError } from "../errors.ts";
import { EventKind } from "../gen/payments/v1/event_pb.ts";
import { scope as scopeOption } from "../gen/payments/v1/options_pb.ts";
import { PaymentService } from "../gen/payments/v1/payment_service_pb.ts";
import { PayoutService } from "../gen/payments/v1/payout_service_pb.ts";
import { isKind, type Kind, kinds } from "../model/kinds.ts";
import type { Call } from "./core.ts";

/**
 * Checks that the caller may call a method. It needs the scope that the proto declares for the
 * method, or, to watch a payment or payout, a watch token for exactly that one. A method that
 * declares no scope is refused to everybody. `customer.ts` limits what a customer-bound caller may
 * act on.
 * @throws GatewayError PERMISSION_DENIED
 */
export function authorize(call: Call, method: DescMethod, request: unknown): void {
  const { scopes, watch } = call.caller;
  const needed = scopeOf(method, request);
  if (needed === "") {
    throw new GatewayError("PERMISSION_DENIED", "this method is not open to callers", {
      reason: "METHOD_NOT_OPEN",
    });
  }
  if (watch && watchMethods[watch.kind] === method) {
    if ((request as { externalId?: unknown }).externalId === watch.externalId) return;
  }
  if ((scopes as ReadonlySet<string>).has(needed)) return;
  throw new GatewayError("PERMISSION_DENIED", `needs the scope ${needed}`, {
    reason: "SCOPE_MISSING",
  });
}

const scopesOfMethods = new Map<DescMethod, string>();

/** Cached by method, since reading an option parses it. */
function scopeOf(method: DescMethod, request: unknown): string {
  let needed = scopesOfMethods.get(method);
  if (needed === undefined) {
    needed = getOption(method, scopeOption);
    scopesOfMethods.set(method, needed);
  }
  if (!needed.includes("{kind}")) return needed;
  const { kind } = request as { readonly kind: number };
  // An unknown kind is refused later, when the request is validated.
  return needed.replace("{kind}", kinds[isKind(kind) ? kind : EventKind.PAYMENT].resource);
}

/**
 * For data that no method, and so no scope, covers: any service may read it, but not a customer or
 * the holder of a watch token.
 * @throws GatewayError PERMISSION_DENIED
 */
export function requireService({ caller }: Call): void {
  if (caller.watch === undefined && caller.customer === undefined) return;
  throw new GatewayError("PERMISSION_DENIED", "only services may call this method", {
    reason: "SERVICES_ONLY",
  });
}

/** The methods that watch one payment or payout. */
const watchMethods: Readonly<Record<Kind, DescMethod>> = {
  [EventKind.PAYMENT]: PaymentService.method.watchPayment,
  [EventKind.PAYOUT]: PayoutService.method.watchPayout,
};
